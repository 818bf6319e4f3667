package dev.muster.agent;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import android.content.res.Configuration;
import android.view.View;
import android.view.ViewGroup;
import android.widget.LinearLayout;
import android.widget.TextView;
import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.junit.Test;
import org.robolectric.Robolectric;
import org.robolectric.RuntimeEnvironment;

/** The status screen: its facts, for people who see, hear or enlarge it, in two languages. */
public final class StatusTest extends Client {
    private StatusActivity screen() {
        return Robolectric.buildActivity(StatusActivity.class).setup().get();
    }

    private static String texts(StatusActivity a) {
        StringBuilder all = new StringBuilder();
        LinearLayout rows = a.findViewById(R.id.rows);
        for (int i = 0; i < rows.getChildCount(); i++) {
            all.append(((TextView) rows.getChildAt(i)).getText()).append('\n');
        }
        return all.toString();
    }

    @Test
    public void showsWhoHoldsWhat() throws Exception {
        enrolled(app);
        fake.owner = true;
        String all = texts(screen());
        for (String want : new String[] {"Service: https://muster.example", "Device ID: d1", "Policy: p1, version 3",
                "CAMERA = BLOCK (applied)",
            "REPORT_POWER_EVENTS", "Last contact", "App version: "}) {
            assertTrue(want + " in " + all, all.contains(want));
        }
    }

    @Test
    public void anOwnerWithoutCodeCanBeRemoved() throws Exception {
        StatusActivity a = screen();
        assertEquals(View.VISIBLE, a.findViewById(R.id.remove).getVisibility());
        fake.owner = false;
        a = screen();
        assertEquals(View.GONE, a.findViewById(R.id.remove).getVisibility());
        assertTrue(texts(a), texts(a).contains("Not set up"));
    }

    @Test
    public void speaksGerman() throws Exception {
        RuntimeEnvironment.setQualifiers("de");
        assertTrue(texts(screen()).contains("Wartet auf den Code"));
    }

    @Test
    public void everyTextIsInBothLanguages() throws Exception {
        Configuration german = new Configuration(app.getResources().getConfiguration());
        german.setLocale(Locale.GERMAN);
        Configuration english = new Configuration(german);
        english.setLocale(Locale.ENGLISH);
        List<String> alike = Arrays.asList("app_name", "fact", "setting", "state", "trouble");
        for (Field f : R.string.class.getFields()) {
            String de = app.createConfigurationContext(german).getString(f.getInt(null));
            String en = app.createConfigurationContext(english).getString(f.getInt(null));
            assertFalse(f.getName(), de.isEmpty() || en.isEmpty());
            assertEquals(f.getName() + " is not translated", alike.contains(f.getName()), de.equals(en));
        }
    }

    /** At twice the font size nothing has a fixed height, the screen scrolls, and a button can be touched. */
    @Test
    public void growsWithTheFont() throws Exception {
        RuntimeEnvironment.setFontScale(2f);
        enrolled(app);
        StatusActivity a = screen();
        View root = ((ViewGroup) a.findViewById(android.R.id.content)).getChildAt(0);
        assertTrue(root.getClass().getName(), root instanceof android.widget.ScrollView);
        LinearLayout rows = a.findViewById(R.id.rows);
        int headings = 0;
        for (int i = 0; i < rows.getChildCount(); i++) {
            TextView row = (TextView) rows.getChildAt(i);
            assertEquals(ViewGroup.LayoutParams.WRAP_CONTENT, row.getLayoutParams().height);
            assertTrue("a reader skips it", row.getText().length() > 0);
            headings += row.isAccessibilityHeading() ? 1 : 0;
        }
        assertEquals(2, headings);
        assertTrue(a.findViewById(R.id.remove).getMinimumHeight() >= 48 * a.getResources().getDisplayMetrics().density);
    }
}
