package dev.muster.agent;

import android.app.admin.FreezePeriod;
import android.app.admin.SystemUpdatePolicy;
import dev.muster.agent.core.DeviceException;
import dev.muster.agent.core.Fields;
import dev.muster.agent.core.Json;
import dev.muster.agent.core.JsonException;
import java.time.DateTimeException;
import java.time.MonthDay;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * SystemUpdates is the rule of SYSTEM_UPDATE: when Android installs its updates. The value is JSON, as
 * docs/policies.md shows it.
 */
final class SystemUpdates extends Rule {
    private static final String AUTOMATIC = "AUTOMATIC";
    private static final String WINDOWED = "WINDOWED";
    private static final String POSTPONE = "POSTPONE";

    SystemUpdates() {
        super(28);
    }

    @Override
    String read(Owner o) {
        SystemUpdatePolicy policy = o.dpm.getSystemUpdatePolicy();
        if (policy == null) {
            return "";
        }
        Map<String, Object> value = new LinkedHashMap<>();
        switch (policy.getPolicyType()) {
            case SystemUpdatePolicy.TYPE_INSTALL_AUTOMATIC:
                value.put("type", AUTOMATIC);
                break;
            case SystemUpdatePolicy.TYPE_INSTALL_WINDOWED:
                value.put("type", WINDOWED);
                value.put("startMinutes", (long) policy.getInstallWindowStart());
                value.put("endMinutes", (long) policy.getInstallWindowEnd());
                break;
            case SystemUpdatePolicy.TYPE_POSTPONE:
                value.put("type", POSTPONE);
                break;
            default: // a type of a later Android: the value differs from the policy's
        }
        List<Object> periods = new ArrayList<>();
        for (FreezePeriod p : policy.getFreezePeriods()) {
            Map<String, Object> period = new LinkedHashMap<>();
            period.put("startDate", dayToJson(p.getStart()));
            period.put("endDate", dayToJson(p.getEnd()));
            periods.add(period);
        }
        if (!periods.isEmpty()) {
            value.put("freezePeriods", periods);
        }
        return Json.write(value);
    }

    private static Map<String, Object> dayToJson(MonthDay d) {
        Map<String, Object> day = new LinkedHashMap<>();
        day.put("month", (long) d.getMonthValue());
        day.put("day", (long) d.getDayOfMonth());
        return day;
    }

    @Override
    void apply(Owner o, String value) throws DeviceException {
        o.dpm.setSystemUpdatePolicy(o.admin, value.isEmpty() ? null : parse(value));
    }

    /** parse reads a value. Android checks it: the exception has Android's message. */
    private static SystemUpdatePolicy parse(String value) throws DeviceException {
        try {
            Fields f = Json.object(value);
            SystemUpdatePolicy policy = withoutFreezePeriods(f);
            List<FreezePeriod> periods = new ArrayList<>();
            for (Fields period : f.objects("freezePeriods")) {
                periods.add(new FreezePeriod(parseDay(period.object("startDate")), parseDay(period.object("endDate"))));
            }
            return policy.setFreezePeriods(periods);
        } catch (JsonException | IllegalArgumentException | DateTimeException e) {
            throw DeviceException.failed("Android does not take this time of system updates: " + e.getMessage());
        }
    }

    private static SystemUpdatePolicy withoutFreezePeriods(Fields f) throws JsonException, DeviceException {
        String type = f.text("type");
        switch (type) {
            case AUTOMATIC:
                return SystemUpdatePolicy.createAutomaticInstallPolicy();
            case WINDOWED:
                return SystemUpdatePolicy.createWindowedInstallPolicy((int) f.number("startMinutes"), (int) f.number("endMinutes"));
            case POSTPONE:
                return SystemUpdatePolicy.createPostponeInstallPolicy();
            default:
                throw DeviceException.unsupported("system updates of type " + type);
        }
    }

    private static MonthDay parseDay(Fields f) throws JsonException {
        if (f == null) {
            throw new JsonException("a freeze period without a day");
        }
        return MonthDay.of((int) f.number("month"), (int) f.number("day"));
    }
}
