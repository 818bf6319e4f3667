package dev.muster.agent;

import static org.junit.Assert.assertNotNull;

import android.app.admin.DevicePolicyManager;
import android.app.admin.SystemUpdatePolicy;
import android.content.ComponentName;
import android.content.Context;
import android.location.LocationManager;
import android.os.Build;
import android.os.Bundle;
import android.os.Process;
import android.os.RemoteCallback;
import android.os.UserManager;
import android.provider.Settings;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.Shadows;

/**
 * FakeDpms stands behind the framework's DevicePolicyManager: it keeps what a device owner sets, refuses
 * what Android refuses by rules.tsv, and records the binder calls that change something.
 */
public final class FakeDpms implements InvocationHandler {
    private static final String PACKAGE = "dev.muster.agent";
    /** GLOBAL are the global settings that Android lets an owner write. */
    private static final List<String> GLOBAL = Arrays.asList("adb_enabled", "auto_time", "auto_time_zone", "data_roaming",
            "usb_mass_storage_enabled", "wifi_sleep_policy", "stay_on_while_plugged_in", "wifi_device_owner_configs_lockdown");

    private final Context context = RuntimeEnvironment.getApplication();
    /** calls are those that change something: name, own texts, and the first number or truth value. */
    final List<String> calls = new ArrayList<>();

    final Set<String> restrictions = new LinkedHashSet<>();
    String refused = ""; // a restriction that Android does not let the owner change
    boolean owner = true;
    boolean inCall;
    boolean grants = true;
    boolean passwordSet;
    boolean locked; // since the start of the device
    boolean affiliated = true;
    private final Map<String, Enforced> enforced = Enforced.here();
    private boolean camera;
    private boolean screen;
    private int permissions;
    private int wifi;
    private int password;
    private SystemUpdatePolicy updates;

    /** install puts a fake behind the manager that the whole application shares. */
    static FakeDpms install() throws Exception {
        FakeDpms fake = new FakeDpms();
        Class<?> type = Class.forName("android.app.admin.IDevicePolicyManager");
        Object proxy = Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, fake);
        Field service = DevicePolicyManager.class.getDeclaredField("mService");
        service.setAccessible(true);
        Object manager = fake.context.getSystemService(Context.DEVICE_POLICY_SERVICE);
        assertNotNull(manager);
        service.set(manager, proxy);
        return fake;
    }

    /** took returns the calls since the last time. */
    List<String> took() {
        List<String> all = new ArrayList<>(calls);
        calls.clear();
        return all;
    }

    private static <T> T first(Object[] arguments, Class<T> type) {
        for (Object a : arguments) {
            if (type.isInstance(a) && !PACKAGE.equals(a)) {
                return type.cast(a);
            }
        }
        return null;
    }

    /** record writes a call down without what only some Android versions pass: the package and the parent's flag. */
    private void record(String name, Object[] arguments) {
        StringBuilder call = new StringBuilder(name);
        boolean counted = false;
        for (Object a : arguments) {
            if (a instanceof String && !PACKAGE.equals(a)) {
                call.append(' ').append(a);
            } else if ((a instanceof Integer || a instanceof Boolean) && !counted) {
                call.append(' ').append(a);
                counted = true;
            }
        }
        calls.add(call.toString().trim());
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] given) {
        Object[] arguments = given == null ? new Object[0] : given;
        String name = method.getName();
        if (name.matches("(set|clear|wipe|reboot).*")) {
            record(name, arguments);
        }
        if (method.getDeclaringClass().getSimpleName().equals("IDevicePolicyManager")) {
            assertNotNull("this Android has no " + name, enforced.get(name));
            enforced.get(name).refuse(this, method.getParameterTypes(), arguments);
        }
        Boolean flag = first(arguments, Boolean.class);
        Integer number = first(arguments, Integer.class);
        switch (name) {
            case "getDeviceOwnerComponent":
            case "getDeviceOwnerComponentOnUser":
                return owner ? new ComponentName(PACKAGE, PACKAGE + ".AdminReceiver") : null;
            case "setUserRestriction":
                restrict(first(arguments, String.class), flag);
                return null;
            case "getUserRestrictions":
                Bundle set = new Bundle();
                for (String key : restrictions) {
                    set.putBoolean(key, true);
                }
                return set;
            case "setCameraDisabled":
                camera = flag;
                return null;
            case "getCameraDisabled":
                return camera;
            case "setScreenCaptureDisabled":
                screen = flag;
                return null;
            case "getScreenCaptureDisabled":
                return screen;
            case "setPermissionPolicy":
                permissions = number;
                return null;
            case "getPermissionPolicy":
                return permissions;
            case "setMinimumRequiredWifiSecurityLevel":
                wifi = number;
                return null;
            case "getMinimumRequiredWifiSecurityLevel":
                return wifi;
            case "setSystemUpdatePolicy":
                updates = first(arguments, SystemUpdatePolicy.class);
                return null;
            case "getSystemUpdatePolicy":
                return updates;
            case "setPasswordQuality":
            case "setRequiredPasswordComplexity":
                password = number;
                return null;
            case "getPasswordQuality":
            case "getRequiredPasswordComplexity":
                return password;
            case "isActivePasswordSufficient":
                return passwordSet;
            case "getStorageEncryptionStatus":
                return DevicePolicyManager.ENCRYPTION_STATUS_ACTIVE_PER_USER;
            case "setPermissionGrantState":
                return grant(arguments);
            case "clearDeviceOwner":
                owner = false;
                restrictions.clear();
                return null;
            case "reboot":
                if (inCall) {
                    throw new IllegalStateException("Cannot be called with ongoing call on the device");
                }
                return null;
            case "wipeDataWithReason":
                wipe(arguments);
                return null;
            default:
                return settings(name, arguments, method.getReturnType());
        }
    }

    private void restrict(String key, boolean on) {
        if (key.equals(refused)) {
            throw new SecurityException("this Android does not change " + key);
        }
        if (on) {
            restrictions.add(key);
        } else {
            restrictions.remove(key);
        }
        Shadows.shadowOf(context.getSystemService(UserManager.class)).setUserRestriction(Process.myUserHandle(), key, on);
        if (on && key.equals("no_airplane_mode")) {
            global("airplane_mode_on", "0");
        }
        if (on && key.equals("no_share_location")) {
            location(false); // UserRestrictionsUtils does so
        }
    }

    private Object grant(Object[] arguments) {
        if (!grants && enforced.get("setPermissionGrantState").names("throws:SecurityException")) {
            throw new SecurityException("Caller not permitted to grant sensor permissions.");
        }
        RemoteCallback answer = first(arguments, RemoteCallback.class);
        if (answer != null) {
            answer.sendResult(grants ? new Bundle() : null);
        }
        return grants;
    }

    /** wipe refuses what Android refuses to apps that target API 34. */
    private void wipe(Object[] arguments) {
        Boolean factoryReset = null;
        for (Object a : arguments) {
            factoryReset = a instanceof Boolean ? (Boolean) a : factoryReset;
        }
        if (Build.VERSION.SDK_INT >= 34 && !factoryReset) {
            throw new IllegalStateException("wipeData may not erase the system user: call wipeDevice");
        }
        if (restrictions.contains("no_factory_reset")) {
            throw new SecurityException("Cannot wipe data. no_factory_reset restriction is set");
        }
    }

    private Object settings(String name, Object[] arguments, Class<?> returns) {
        Boolean flag = first(arguments, Boolean.class);
        switch (name) {
            case "setGlobalSetting":
                String[] pair = texts(arguments);
                if (!GLOBAL.contains(pair[0])) {
                    throw new SecurityException("Permission denial: device owners cannot update " + pair[0]);
                }
                global(pair[0], pair[1]);
                break;
            case "setSecureSetting":
                location(!texts(arguments)[1].equals("0"));
                break;
            case "setLocationEnabled":
                location(flag);
                break;
            case "setAutoTimeEnabled":
                global("auto_time", flag ? "1" : "0");
                break;
            case "setAutoTimeZoneEnabled":
                global("auto_time_zone", flag ? "1" : "0");
                break;
            default:
        }
        return returns == boolean.class ? Boolean.FALSE : returns == int.class ? Integer.valueOf(0) : null;
    }

    private static String[] texts(Object[] arguments) {
        List<String> all = new ArrayList<>();
        for (Object a : arguments) {
            if (a instanceof String && !PACKAGE.equals(a)) {
                all.add((String) a);
            }
        }
        return all.toArray(new String[0]);
    }

    private void global(String name, String value) {
        Settings.Global.putInt(context.getContentResolver(), name, Integer.parseInt(value));
    }

    private void location(boolean on) {
        Shadows.shadowOf(context.getSystemService(LocationManager.class)).setLocationEnabled(on);
    }
}
