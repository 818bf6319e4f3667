package dev.muster.lint;

import java.io.BufferedInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.ObjectInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;
import org.codehaus.mojo.animal_sniffer.Clazz;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.FieldVisitor;
import org.objectweb.asm.Handle;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * ApiLint checks that the app's classes use nothing but the public API of Android 8 (API 26) and what a
 * written list allows. It follows calls that a class inherits up to the framework, which the usual tools
 * do not. What is newer than Android 9 (API 28) may be used in classes SinceNN alone.
 *
 * Usage: ApiLint signatures list classes
 */
public final class ApiLint {
    private static final int OLDEST = 28;

    private final Map<String, Clazz> api = new HashMap<>();
    private final Map<String, Integer> listed = new TreeMap<>();
    private final Map<String, String[]> own = new HashMap<>(); // class to what it extends and implements
    private final Map<String, Set<String>> members = new HashMap<>(); // of own classes
    private final Set<String> problems = new TreeSet<>();
    private final Set<String> used = new TreeSet<>();

    public static void main(String[] args) throws Exception {
        ApiLint lint = new ApiLint();
        lint.readApi(new File(args[0]));
        for (String line : Files.readAllLines(Paths.get(args[1]))) {
            if (!line.isEmpty() && !line.startsWith("#")) {
                lint.listed.put(line.substring(line.indexOf(' ') + 1), Integer.valueOf(line.substring(0, line.indexOf(' '))));
            }
        }
        List<byte[]> classes = new ArrayList<>();
        try (Stream<Path> all = Files.walk(Paths.get(args[2]))) {
            for (Path p : all.filter(f -> f.toString().endsWith(".class")).collect(Collectors.toList())) {
                classes.add(Files.readAllBytes(p));
            }
        }
        classes.forEach(lint::declare);
        classes.forEach(lint::check);
        lint.listed.keySet().stream().filter(m -> !lint.used.contains(m))
                .forEach(m -> lint.problems.add("the list names what nothing uses: " + m));
        if (classes.size() < 50) {
            lint.problems.add("there are " + classes.size() + " classes: is this the app?");
        }
        lint.problems.forEach(System.err::println);
        System.err.println("api lint: " + classes.size() + " classes, " + lint.problems.size() + " problems");
        System.exit(lint.problems.isEmpty() ? 0 : 1);
    }

    private void readApi(File file) throws IOException, ClassNotFoundException {
        try (InputStream raw = new BufferedInputStream(Files.newInputStream(file.toPath()));
                ObjectInputStream in = new ObjectInputStream(new GZIPInputStream(raw))) {
            for (Clazz c = (Clazz) in.readObject(); c != null; c = (Clazz) in.readObject()) {
                api.put(c.name(), c);
            }
        }
    }

    private void declare(byte[] bytes) {
        ClassReader reader = new ClassReader(bytes);
        List<String> up = new ArrayList<>();
        up.add(reader.getSuperName());
        up.addAll(List.of(reader.getInterfaces()));
        own.put(reader.getClassName(), up.toArray(new String[0]));
        Set<String> declared = new TreeSet<>();
        reader.accept(new ClassVisitor(Opcodes.ASM9) {
            @Override
            public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
                declared.add(name + descriptor);
                return null;
            }

            @Override
            public FieldVisitor visitField(int access, String name, String descriptor, String signature, Object value) {
                declared.add(name + "#" + descriptor);
                return null;
            }
        }, ClassReader.SKIP_CODE);
        members.put(reader.getClassName(), declared);
    }

    private void check(byte[] bytes) {
        ClassReader reader = new ClassReader(bytes);
        String from = reader.getClassName();
        for (String up : own.get(from)) {
            type(from, up);
        }
        reader.accept(new ClassVisitor(Opcodes.ASM9) {
            @Override
            public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
                return new MethodVisitor(Opcodes.ASM9) {
                    @Override
                    public void visitMethodInsn(int opcode, String owner, String called, String described, boolean isInterface) {
                        member(from, owner, called + described);
                    }

                    @Override
                    public void visitFieldInsn(int opcode, String owner, String field, String described) {
                        member(from, owner, field + "#" + described);
                    }

                    @Override
                    public void visitTypeInsn(int opcode, String named) {
                        type(from, named);
                    }

                    @Override
                    public void visitInvokeDynamicInsn(String called, String described, Handle handle, Object... arguments) {
                        problems.add(from + ": invokedynamic, which the translator to Android's bytecode does not know");
                    }
                };
            }
        }, 0);
    }

    private void type(String from, String name) {
        String plain = name.replaceAll("^\\[+L?|;$", "");
        if (plain.length() > 1 && !own.containsKey(plain) && !api.containsKey(plain)) {
            allow(from, plain, plain);
        }
    }

    private void member(String from, String owner, String signature) {
        if (owner.startsWith("[") || found(owner, signature)) {
            return;
        }
        String framework = owner;
        while (own.containsKey(framework)) {
            framework = own.get(framework)[0];
        }
        allow(from, framework + "." + signature, framework);
    }

    /** found looks for a member in a class and in all that it inherits from. */
    private boolean found(String owner, String signature) {
        if (own.containsKey(owner)) {
            if (members.get(owner).contains(signature)) {
                return true;
            }
            for (String up : own.get(owner)) {
                if (found(up, signature)) {
                    return true;
                }
            }
            return false;
        }
        Clazz c = api.get(owner);
        if (c == null) {
            return false;
        }
        if (c.signatures().contains(signature)) {
            return true;
        }
        for (String up : c.superInterfaces()) {
            if (found(up, signature)) {
                return true;
            }
        }
        return c.superClass() != null && found(c.superClass(), signature);
    }

    private void allow(String from, String what, String type) {
        String name = listed.containsKey(what) ? what : type;
        Integer level = listed.get(name);
        used.add(name);
        if (level == null) {
            problems.add(from + ": " + what + " is not public in API 26, and not in the list");
        } else if (level > OLDEST && !from.matches(".*/Since[0-9]+") || level > OLDEST && since(from) < level) {
            problems.add(from + ": " + what + " takes API " + level + ": call it in a class Since" + level);
        }
    }

    private static int since(String from) {
        return Integer.parseInt(from.substring(from.lastIndexOf("Since") + 5));
    }
}
