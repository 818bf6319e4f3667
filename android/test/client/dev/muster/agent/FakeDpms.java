package dev.muster.agent;

import android.app.admin.DevicePolicyManager;
import android.content.Context;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.robolectric.RuntimeEnvironment;

/** FakeDpms stands behind the framework's DevicePolicyManager and records the binder calls. */
public final class FakeDpms implements InvocationHandler {
    final List<String> calls = new ArrayList<>();

    static FakeDpms install() throws Exception {
        FakeDpms fake = new FakeDpms();
        Class<?> type = Class.forName("android.app.admin.IDevicePolicyManager");
        Object proxy = Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, fake);
        Field service = DevicePolicyManager.class.getDeclaredField("mService");
        service.setAccessible(true);
        service.set(RuntimeEnvironment.getApplication().getSystemService(Context.DEVICE_POLICY_SERVICE), proxy);
        return fake;
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) {
        calls.add(method.getName() + Arrays.toString(arguments));
        Class<?> type = method.getReturnType();
        if (type == boolean.class) {
            return Boolean.TRUE;
        }
        return type == int.class ? Integer.valueOf(0) : null;
    }
}
