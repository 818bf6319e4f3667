import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.Handle;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

/**
 * Rules lists what Android's own DevicePolicyManagerService enforces in each method that an app can call:
 * one line an API level and method, with the calls that refuse, the permissions they name and the
 * exceptions it throws itself, in their order. Its arguments are pairs: API level and JAR of Android.
 */
public final class Rules {
    private static final String SERVICE = "com/android/server/devicepolicy/DevicePolicyManagerService";
    private static final String INTERFACE = "android/app/admin/IDevicePolicyManager";
    /** REFUSES are the names of calls that refuse, or decide whether something is refused. */
    private static final Pattern REFUSES = Pattern.compile("enforce.*|check(CallAuthorization|CallingUser|ArgumentN.*)"
            + "|getActiveAdmin(OrCheckPermission)?ForCaller.*"
            + "|getActiveAdminWithPolicyForUid.*|is(Default|Financed|Profile|Organization).*Owner.*"
            + "|isDeviceOwner|isProfileOwner|isCaller.*|has(FullCrossUsers|CrossUsers|CallingOrSelf)Permission|isUserAffiliatedWithDevice.*"
            + "|areAllUsersAffiliated.*|ensure.*");

    private static final List<String> NONNULL = List.of("requireNonNull", "checkNotNull", "checkStringNotEmpty");

    /** DEPTH is how far the service's own helpers are followed. */
    private static final int DEPTH = 2;

    private final Map<String, List<Body>> bodies = new TreeMap<>();

    /** Body is one method: what it names in its order, calls of the service itself marked. */
    private static final class Body {
        final List<String> steps = new ArrayList<>();
    }

    public static void main(String[] args) throws IOException {
        for (int i = 0; i < args.length; i += 2) {
            try (ZipFile jar = new ZipFile(args[i + 1])) {
                Rules rules = new Rules();
                rules.read(jar);
                for (String method : methods(jar)) {
                    Set<String> found = new LinkedHashSet<>();
                    rules.walk(method, DEPTH, new HashSet<>(), found);
                    System.out.println((args[i] + "\t" + method + "\t" + String.join(" ", found)).trim());
                }
            }
        }
    }

    private static ClassReader open(ZipFile jar, String name) throws IOException {
        ZipEntry entry = jar.getEntry(name + ".class");
        try (InputStream in = jar.getInputStream(entry)) {
            return new ClassReader(in);
        }
    }

    /** methods are those of the binder interface. */
    private static Set<String> methods(ZipFile jar) throws IOException {
        Set<String> all = new TreeSet<>();
        open(jar, INTERFACE).accept(new ClassVisitor(Opcodes.ASM9) {
            @Override
            public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
                if ((access & Opcodes.ACC_ABSTRACT) != 0) {
                    all.add(name);
                }
                return null;
            }
        }, ClassReader.SKIP_CODE);
        return all;
    }

    private void read(ZipFile jar) throws IOException {
        open(jar, SERVICE).accept(new ClassVisitor(Opcodes.ASM9) {
            @Override
            public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
                Body body = new Body();
                bodies.computeIfAbsent(name, n -> new ArrayList<>()).add(body);
                return steps(body, parameters(access, descriptor));
            }
        }, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES);
    }

    /** parameters are the types' short names by the local variables that hold them. */
    private static Map<Integer, String> parameters(int access, String descriptor) {
        Map<Integer, String> all = new TreeMap<>();
        int slot = (access & Opcodes.ACC_STATIC) == 0 ? 1 : 0;
        for (Type type : Type.getArgumentTypes(descriptor)) {
            all.put(slot, type.getClassName().replaceAll(".*[.]", ""));
            slot += type.getSize();
        }
        return all;
    }

    private static MethodVisitor steps(Body body, Map<Integer, String> parameters) {
        return new MethodVisitor(Opcodes.ASM9) {
            private String made = ""; // the exception that was made last
            private String loaded = ""; // the type of the parameter that was loaded last

            @Override
            public void visitVarInsn(int opcode, int slot) {
                loaded = parameters.getOrDefault(slot, "");
            }

            @Override
            public void visitLdcInsn(Object value) {
                if (value instanceof String && ((String) value).startsWith("android.permission.")) {
                    body.steps.add(((String) value).substring("android.permission.".length()));
                }
            }

            @Override
            public void visitMethodInsn(int opcode, String owner, String name, String descriptor, boolean isInterface) {
                if (name.equals("<init>") && owner.endsWith("Exception")) {
                    made = owner.substring(owner.lastIndexOf('/') + 1);
                } else if (NONNULL.contains(name)) {
                    body.steps.add("nonnull:" + loaded);
                } else if (REFUSES.matcher(name).matches()) {
                    body.steps.add(name);
                } else if (owner.equals(SERVICE)) {
                    body.steps.add("@" + name);
                }
            }

            @Override
            public void visitInvokeDynamicInsn(String name, String descriptor, Handle bootstrap, Object... arguments) {
                for (Object a : arguments) {
                    if (a instanceof Handle && ((Handle) a).getOwner().equals(SERVICE)) {
                        body.steps.add("@" + ((Handle) a).getName());
                    }
                }
            }

            @Override
            public void visitInsn(int opcode) {
                if (opcode == Opcodes.ATHROW && !made.isEmpty()) {
                    body.steps.add("throws:" + made);
                    made = "";
                }
            }
        };
    }

    private void walk(String method, int depth, Set<String> seen, Set<String> found) {
        if (!seen.add(method)) {
            return;
        }
        for (Body body : bodies.getOrDefault(method, List.of())) {
            for (String step : body.steps) {
                if (!step.startsWith("@")) {
                    found.add(step);
                } else if (depth > 0 && !step.startsWith("@get") && !step.startsWith("@is")) {
                    walk(step.substring(1), depth - 1, seen, found);
                }
            }
        }
    }
}
