package dev.muster.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertTrue;

import android.app.admin.DevicePolicyManager;
import android.content.ComponentName;
import android.os.Build;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.Test;

/** The fake behind all these tests refuses what Android's own service refuses, in every method of the list. */
public final class EnforcedTest extends Client {
    /** OWNERS are the methods that the app calls and that Android keeps for the device's owner, by the API level that brought them. */
    private static final List<String> OWNERS = Arrays.asList("28 setUserRestriction", "28 getUserRestrictions", "28 setCameraDisabled",
            "28 setScreenCaptureDisabled", "28 setPermissionPolicy", "28 setPermissionGrantState", "28 setGlobalSetting",
            "28 setSecureSetting",
            "28 setAutoTimeRequired", "28 reboot", "28 wipeDataWithReason", "28 clearDeviceOwner", "28 isActivePasswordSufficient",
            "33 setLocationEnabled", "33 setAutoTimeEnabled", "33 setAutoTimeZoneEnabled", "33 setRequiredPasswordComplexity",
            "33 getRequiredPasswordComplexity", "33 setMinimumRequiredWifiSecurityLevel");

    private Object service() throws Exception {
        Field service = DevicePolicyManager.class.getDeclaredField("mService");
        service.setAccessible(true);
        return service.get(app.getSystemService(DevicePolicyManager.class));
    }

    /** arguments are sound ones, or null where the test has none of a type. */
    private Object[] arguments(Method m) {
        Object[] all = new Object[m.getParameterCount()];
        for (int i = 0; i < all.length; i++) {
            Class<?> type = m.getParameterTypes()[i];
            all[i] = type == ComponentName.class ? new ComponentName(app, AdminReceiver.class) : type == String.class ? app.getPackageName()
                    : type == boolean.class ? (Object) false : type == int.class ? (Object) 0 : type == long.class ? (Object) 0L : null;
        }
        return all;
    }

    /** refusal is the name of what a method throws, or "". */
    private String refusal(Method m, Object... arguments) throws Exception {
        try {
            m.setAccessible(true);
            m.invoke(service(), arguments);
            return "";
        } catch (InvocationTargetException e) {
            return e.getCause().getClass().getSimpleName();
        } catch (IllegalArgumentException e) {
            return "no argument";
        }
    }

    private static List<Method> methods() throws Exception {
        List<Method> all = new ArrayList<>();
        for (Method m : Class.forName("android.app.admin.IDevicePolicyManager").getDeclaredMethods()) {
            if (java.lang.reflect.Modifier.isAbstract(m.getModifiers())) {
                all.add(m);
            }
        }
        return all;
    }

    @Test
    public void theListNamesEveryMethodOfThisAndroid() throws Exception {
        for (Method m : methods()) {
            assertNotNull(m.getName(), Enforced.here().get(m.getName()));
        }
        assertTrue(Enforced.here().size() + " methods", Enforced.here().size() > 200);
    }

    @Test
    public void whatIsTheOwnersIsRefusedToOthersAndForAnotherAdmin() throws Exception {
        int refused = 0;
        for (Method m : methods()) {
            Enforced e = Enforced.here().get(m.getName());
            Object[] sound = arguments(m);
            if (!e.ownersAlone() || needsMore(e, m, sound)) {
                continue;
            }
            fake.owner = false;
            assertEquals(e.method, "SecurityException", refusal(m, sound));
            fake.owner = true;
            for (int i = 0; i < sound.length; i++) {
                if (sound[i] instanceof ComponentName) {
                    Object[] other = sound.clone();
                    other[i] = new ComponentName("com.example.other", "Admin");
                    assertEquals(e.method, "SecurityException", refusal(m, other));
                }
            }
            refused++;
        }
        assertTrue(refused + " refused", refused > 100);
    }

    /** needsMore reports a method that takes what this test has not. */
    private static boolean needsMore(Enforced e, Method m, Object[] sound) {
        for (int i = 0; i < sound.length; i++) {
            if (sound[i] == null && e.names("nonnull:" + m.getParameterTypes()[i].getSimpleName())) {
                return true;
            }
        }
        return false;
    }

    @Test
    public void whatMustBeNamedIsDemanded() throws Exception {
        int refused = 0;
        for (Method m : methods()) {
            Enforced e = Enforced.here().get(m.getName());
            Object[] without = arguments(m);
            if (without.length > 0 && without[0] instanceof ComponentName && e.names("nonnull:ComponentName")
                    && e.steps.indexOf("nonnull:ComponentName") == 0) {
                without[0] = null;
                assertEquals(e.method, "NullPointerException", refusal(m, without));
                refused++;
            }
        }
        assertTrue(refused + " refused", refused > 20);
    }

    @Test
    public void beforeTheFirstUnlockAndWithStrangersOnTheDevice() throws Exception {
        int unlocked = 0;
        int affiliated = 0;
        for (Method m : methods()) {
            Enforced e = Enforced.here().get(m.getName());
            if (needsMore(e, m, arguments(m))) {
                continue;
            }
            if (e.names("enforceUserUnlocked")) {
                fake.locked = true;
                String how = refusal(m, arguments(m));
                assertEquals(e.method, "IllegalStateException", how);
                fake.locked = false;
                unlocked++;
            }
            if (e.affiliated()) {
                fake.affiliated = false;
                assertEquals(e.method, "SecurityException", refusal(m, arguments(m)));
                fake.affiliated = true;
                affiliated++;
            }
        }
        assertTrue(unlocked + " take an unlocked device", unlocked >= 2);
        assertTrue(affiliated + " take affiliated users", affiliated >= 2);
    }

    /** The list would be worth nothing if it said that Android takes everything: these are known. */
    @Test
    public void theListKnowsWhatTheAppCalls() {
        for (String owner : OWNERS) {
            String[] pair = owner.split(" ");
            boolean there = Integer.parseInt(pair[0]) <= Build.VERSION.SDK_INT;
            Enforced e = Enforced.here().get(pair[1]);
            assertEquals(owner, there, e != null);
            assertTrue(owner, !there || e.ownersAlone());
        }
        assertTrue(Enforced.here().get("isActivePasswordSufficient").names("enforceUserUnlocked"));
        assertTrue(Enforced.here().get("clearDeviceOwner").names("enforceUserUnlocked"));
        assertEquals(Build.VERSION.SDK_INT >= 34, Enforced.here().get("setPermissionGrantState").names("throws:SecurityException"));
    }
}
