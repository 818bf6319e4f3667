package dev.muster.agent;

import android.app.Activity;
import android.app.AlertDialog;
import android.content.DialogInterface;
import android.os.Bundle;
import android.text.InputType;
import android.text.format.DateUtils;
import android.view.LayoutInflater;
import android.view.View;
import android.widget.EditText;
import android.widget.LinearLayout;
import android.widget.TextView;
import dev.muster.agent.core.Status;
import java.io.IOException;
import java.util.Map;

/**
 * StatusActivity shows who manages the device, what is held and reported, the last contact and the
 * version. Text of the service is shown as text.
 */
public final class StatusActivity extends Activity {
    private LinearLayout rows;
    private Keeper keeper;

    @Override
    protected void onCreate(Bundle saved) {
        super.onCreate(saved);
        setContentView(R.layout.status);
        rows = findViewById(R.id.rows);
        keeper = MusterApp.keeper(this);
    }

    @Override
    protected void onResume() {
        super.onResume();
        keeper.start();
        show();
    }

    private void show() {
        rows.removeAllViews();
        Status status = null;
        try {
            status = Status.read(keeper.files.directory);
        } catch (IOException e) {
            // The state below says what is the matter.
        }
        Keeper.State state = keeper.state();
        row(R.string.state, getString(word(state)));
        String serial = keeper.owner.owns() ? AndroidDevice.serial(keeper.owner) : "";
        if (!serial.isEmpty()) {
            row(R.string.serial_number, serial);
        }
        if (!keeper.trouble().isEmpty()) {
            row(R.string.trouble, keeper.trouble());
        }
        if (status != null) {
            row(R.string.managed_by, status.server);
            row(R.string.device_id, status.deviceId);
            row(R.string.policy, getString(R.string.policy_version, status.policyId, status.policyVersion));
        }
        row(R.string.last_contact, keeper.contact() == 0 ? getString(R.string.none_yet)
                : DateUtils.formatDateTime(this, keeper.contact(), DateUtils.FORMAT_SHOW_DATE | DateUtils.FORMAT_SHOW_TIME));
        row(R.string.version, keeper.version());
        if (status != null) {
            settings(status);
        }
        button(R.id.battery, status != null && Battery.canAsk(this), new View.OnClickListener() {
            @Override
            public void onClick(View v) {
                if (!Battery.ask(StatusActivity.this, 0)) {
                    v.setVisibility(View.GONE);
                }
            }
        });
        button(R.id.token, keeper.takesToken(), new View.OnClickListener() {
            @Override
            public void onClick(View v) {
                askToken();
            }
        });
        button(R.id.remove, keeper.owner.owns() && !keeper.files.enrolled(), new View.OnClickListener() {
            @Override
            public void onClick(View v) {
                ask();
            }
        });
    }

    /** settings lists what is held and what is reported: a person sees what the organization sees. */
    private void settings(Status status) {
        heading(R.string.held);
        int held = 0;
        for (Map.Entry<String, String> e : status.wanted.entrySet()) {
            if (!reporting(e.getKey())) {
                text(getString(R.string.setting, e.getKey(), e.getValue(), status.states.get(e.getKey())));
                held++;
            }
        }
        if (held == 0) {
            text(getString(R.string.nothing));
        }
        heading(R.string.reported);
        text(getString(R.string.always_reported));
        for (Map.Entry<String, String> e : status.wanted.entrySet()) {
            if (reporting(e.getKey()) && !e.getValue().equals("DISABLED")) {
                text(e.getKey());
            }
        }
    }

    private static boolean reporting(String setting) {
        return setting.startsWith("REPORT_") || setting.equals("APPLICATION_REPORT_LEVEL");
    }

    private static int word(Keeper.State state) {
        switch (state) {
            case NOT_OWNER:
                return R.string.state_not_owner;
            case WAITING:
                return R.string.state_waiting;
            case ENROLLING:
                return R.string.state_enrolling;
            case REFUSED:
                return R.string.state_refused;
            case SUPERSEDED:
                return R.string.state_superseded;
            case LOST:
                return R.string.state_lost;
            case ASKING:
                return R.string.state_asking;
            case ENDED:
                return R.string.state_ended;
            default:
                return R.string.state_enrolled;
        }
    }

    private void button(int id, boolean shown, View.OnClickListener pressed) {
        View button = findViewById(id);
        button.setVisibility(shown ? View.VISIBLE : View.GONE);
        button.setOnClickListener(pressed);
    }

    private void heading(int text) {
        TextView view = (TextView) LayoutInflater.from(this).inflate(R.layout.heading, rows, false);
        view.setText(text);
        rows.addView(view);
    }

    /** row is one fact. Its name and value are one text, so that a screen reader reads them together. */
    private void row(int name, String value) {
        text(getString(R.string.fact, getString(name), value));
    }

    private void text(String text) {
        TextView view = (TextView) LayoutInflater.from(this).inflate(R.layout.row, rows, false);
        view.setText(text);
        rows.addView(view);
    }

    /** askToken takes a token for a device that lost its key. */
    private void askToken() {
        final EditText typed = new EditText(this);
        typed.setHint(R.string.token_hint);
        typed.setInputType(InputType.TYPE_CLASS_TEXT | InputType.TYPE_TEXT_FLAG_NO_SUGGESTIONS);
        new AlertDialog.Builder(this).setTitle(R.string.token).setView(typed)
                .setNegativeButton(android.R.string.cancel, null)
                .setPositiveButton(R.string.token_use, new DialogInterface.OnClickListener() {
                    @Override
                    public void onClick(DialogInterface dialog, int which) {
                        try {
                            keeper.takeToken(typed.getText().toString());
                        } catch (IOException e) {
                            keeper.error("cannot use the token", e);
                        }
                        show();
                    }
                }).show();
    }

    private void ask() {
        new AlertDialog.Builder(this).setTitle(R.string.remove).setMessage(R.string.remove_question)
                .setNegativeButton(android.R.string.cancel, null)
                .setPositiveButton(R.string.remove, new DialogInterface.OnClickListener() {
                    @Override
                    public void onClick(DialogInterface dialog, int which) {
                        try {
                            keeper.giveUp();
                        } catch (IOException e) {
                            keeper.error("cannot give up the ownership", e);
                        }
                        show();
                    }
                }).show();
    }
}
