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

/** SystemUpdates is when Android installs updates of the system. The value is JSON, as the service writes it. */
final class SystemUpdates extends Rule {
    private static final String AUTOMATIC = "AUTOMATIC";
    private static final String WINDOWED = "WINDOWED";
    private static final String POSTPONE = "POSTPONE";

    SystemUpdates() {
        super(28);
    }

    @Override
    String read(Owner o) {
        SystemUpdatePolicy set = o.dpm.getSystemUpdatePolicy();
        if (set == null) {
            return "";
        }
        Map<String, Object> value = new LinkedHashMap<>();
        switch (set.getPolicyType()) {
            case SystemUpdatePolicy.TYPE_INSTALL_AUTOMATIC:
                value.put("type", AUTOMATIC);
                break;
            case SystemUpdatePolicy.TYPE_INSTALL_WINDOWED:
                value.put("type", WINDOWED);
                value.put("startMinutes", (long) set.getInstallWindowStart());
                value.put("endMinutes", (long) set.getInstallWindowEnd());
                break;
            case SystemUpdatePolicy.TYPE_POSTPONE:
                value.put("type", POSTPONE);
                break;
            default:
        }
        List<Object> periods = new ArrayList<>();
        for (FreezePeriod p : set.getFreezePeriods()) {
            Map<String, Object> period = new LinkedHashMap<>();
            period.put("startDate", day(p.getStart()));
            period.put("endDate", day(p.getEnd()));
            periods.add(period);
        }
        if (!periods.isEmpty()) {
            value.put("freezePeriods", periods);
        }
        return Json.write(value);
    }

    private static Map<String, Object> day(MonthDay d) {
        Map<String, Object> day = new LinkedHashMap<>();
        day.put("month", (long) d.getMonthValue());
        day.put("day", (long) d.getDayOfMonth());
        return day;
    }

    @Override
    void apply(Owner o, String value) throws DeviceException {
        o.dpm.setSystemUpdatePolicy(o.admin, value.isEmpty() ? null : policy(value));
    }

    /** policy is that of a value. What Android refuses of it, it says in words of its own. */
    private static SystemUpdatePolicy policy(String value) throws DeviceException {
        try {
            Fields f = Json.object(value);
            SystemUpdatePolicy p = policy(f.text("type"), f);
            List<FreezePeriod> periods = new ArrayList<>();
            for (Fields period : f.objects("freezePeriods")) {
                periods.add(new FreezePeriod(day(period.object("startDate")), day(period.object("endDate"))));
            }
            return p.setFreezePeriods(periods);
        } catch (JsonException | IllegalArgumentException | DateTimeException e) {
            throw DeviceException.failed("Android does not take this time of system updates: " + e.getMessage());
        }
    }

    private static SystemUpdatePolicy policy(String type, Fields f) throws JsonException, DeviceException {
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

    private static MonthDay day(Fields f) throws JsonException {
        if (f == null) {
            throw new JsonException("a freeze period without a day");
        }
        return MonthDay.of((int) f.number("month"), (int) f.number("day"));
    }
}
