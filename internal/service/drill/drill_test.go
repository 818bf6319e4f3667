package drill_test

import (
	"bytes"
	"context"
	"log/slog"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database/triggertest"
	"github.com/musterhq/muster/internal/service/drill"
)

func settings() drill.Settings {
	return drill.Settings{Now: time.Now, Log: slog.New(slog.DiscardHandler)}
}

// Each scenario, as a release runs it, does no harm, and reaches what it attacks.
func TestRun_DoesNoHarm(t *testing.T) {
	t.Parallel()
	for _, name := range drill.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := settings()
			s.Scenarios = []string{name}
			report, err := drill.Run(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			var table bytes.Buffer
			if err := report.Table(&table); err != nil {
				t.Fatal(err)
			}
			t.Log("\n" + table.String())
			for line := range strings.Lines(table.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 120 {
					t.Errorf("a line of %d columns: %s", n, line)
				}
			}
			if !report.Harmless() {
				t.Errorf("harm was done: %q", report.Scenarios[0].Harm)
			}
			for _, fact := range report.Scenarios[0].Facts {
				if strings.Contains(fact, "was refused each time") {
					t.Errorf("the drill does not reach what it attacks: %s", fact)
				}
			}
		})
	}
}

// A control that is taken away makes its scenario find harm.
func TestRun_FindsHarmWithoutAControl(t *testing.T) {
	t.Parallel()
	for control, c := range map[string]struct {
		scenario string
		without  []string               // statements on the database
		change   func(*access.Controls) // nil: none
		harm     string
	}{
		"limit": {"stolen-administrator", []string{
			`CREATE TRIGGER forget AFTER INSERT ON destructive_uses BEGIN DELETE FROM destructive_uses; END`}, nil,
			"devices got a destructive command"},
		"limit of replacements": {"stolen-administrator", []string{
			`CREATE TRIGGER forget AFTER INSERT ON destructive_uses
				WHEN NOT EXISTS (SELECT 1 FROM commands c WHERE c.asset_id = NEW.asset_id AND c.epoch = NEW.epoch AND c.type IN
					('WIPE_COMPANY_DATA', 'RESET_SCREEN_LOCK', 'CHANGE_SCREEN_LOCK_PASSWORD', 'RELINQUISH_OWNERSHIP'))
				BEGIN DELETE FROM destructive_uses WHERE asset_id = NEW.asset_id AND epoch = NEW.epoch; END`}, nil, "left their assets"},
		"reserve": {"stolen-administrator", []string{
			`CREATE TRIGGER forget AFTER INSERT ON destructive_uses WHEN (SELECT COUNT(*) FROM destructive_uses) > 25
				BEGIN DELETE FROM destructive_uses WHERE asset_id = NEW.asset_id; END`}, nil, "devices got a destructive command"},
		"delayed loosening": {"stolen-administrator", []string{
			`CREATE TRIGGER hurry AFTER INSERT ON loosenings BEGIN UPDATE loosenings SET effective_at = 0; END`,
			`CREATE TRIGGER hurry_again AFTER UPDATE ON loosenings BEGIN UPDATE loosenings SET effective_at = 0; END`},
			nil, "became looser"},
		"age of who confirms": {"stolen-administrator", nil, func(c *access.Controls) { c.ApproverAge = 0 }, "became looser"},
		"second administrator": {"stolen-administrator", []string{
			// All that is asked for seems to be asked for by another administrator of long standing.
			`CREATE TABLE another AS SELECT * FROM users WHERE email = 'admin@acme.test'`,
			`UPDATE another SET id = 'another', email = 'another@acme.test', created_at = 0, rights_at = 0`,
			`INSERT INTO users SELECT * FROM another`,
			`CREATE TRIGGER disown AFTER INSERT ON loosenings BEGIN UPDATE loosenings SET asked_by = 'another'; END`,
			`CREATE TRIGGER disown_again AFTER UPDATE ON loosenings BEGIN UPDATE loosenings SET asked_by = 'another'; END`},
			nil, "became looser"},
		"second person": {"stolen-administrator", []string{
			// All keys seem to be made by another administrator.
			`CREATE TRIGGER disown AFTER INSERT ON api_keys BEGIN UPDATE api_keys SET created_by = 'another' WHERE id = NEW.id; END`}, nil,
			"decide with the account that asked"},
		"age of who decides": {"stolen-administrator", []string{
			`CREATE TRIGGER older AFTER INSERT ON users BEGIN UPDATE users SET created_at = 0, rights_at = 0 WHERE id = NEW.id; END`,
			`CREATE TRIGGER older_key AFTER INSERT ON passkeys BEGIN UPDATE passkeys SET created_at = 0 WHERE id = NEW.id; END`}, nil,
			"decide with a new helper account"},
		"age of who asks": {"stolen-administrator", []string{
			`CREATE TRIGGER older AFTER INSERT ON users BEGIN UPDATE users SET created_at = 0, rights_at = 0 WHERE id = NEW.id; END`}, nil,
			"ask with a new helper account"},
		"age of more policies": {"stolen-administrator", []string{
			`CREATE TRIGGER older AFTER UPDATE ON users BEGIN UPDATE users SET rights_at = 0 WHERE id = NEW.id; END`}, nil,
			"decide with more policies"},
		"permits": {"stolen-administrator", []string{
			`CREATE TRIGGER stay AFTER UPDATE ON control_versions
				BEGIN UPDATE control_versions SET version = OLD.version WHERE company_id = NEW.company_id; END`}, nil,
			"requests open across a stop"},
		"permits of ended accounts": {"stolen-administrator", []string{
			`CREATE TRIGGER stay AFTER UPDATE ON control_versions WHEN EXISTS (SELECT 1 FROM users WHERE email = 'ended@acme.test')
				BEGIN UPDATE control_versions SET version = OLD.version WHERE company_id = NEW.company_id; END`}, nil,
			"requests open as rights end"},
		"approval of changes": {"compromised-model", nil, func(c *access.Controls) { c.ApplyApproval = access.ApproveNone },
			"policies changed"},
		"authorization of destructive commands": {"compromised-model", nil, func(c *access.Controls) { c.DestructiveApproval = false },
			"destructive commands were recorded"},
		"a change under way": {"compromised-model", []string{
			// It is applied without being seen.
			`CREATE TRIGGER hide AFTER UPDATE ON proposals WHEN NEW.status = 'EXECUTING' AND NEW.capability <> 'create_policy'
				BEGIN UPDATE proposals SET status = 'UNCONFIRMED', looks = 1 WHERE id = NEW.id; END`}, nil,
			"reached a device without a person"},
		"a move under way": {"compromised-model", []string{
			`CREATE TRIGGER hide AFTER INSERT ON commands WHEN NEW.type = 'CHANGE_POLICY'
				BEGIN UPDATE commands SET epoch = -1 WHERE id = NEW.id; END`}, nil, "reached a device without a person"},
		"idempotency": {"confused-retry", []string{
			`CREATE TRIGGER forget AFTER INSERT ON claims BEGIN DELETE FROM claims; END`,
			`CREATE TRIGGER unbind AFTER INSERT ON commands BEGIN UPDATE commands SET idempotency_ref = '' WHERE id = NEW.id; END`}, nil,
			"a command was recorded 2 times"},
	} {
		t.Run(control, func(t *testing.T) {
			t.Parallel()
			change := c.change
			if change == nil {
				change = func(*access.Controls) {}
			}
			result, err := settings().Without(t.Context(), c.scenario, func(ctx context.Context, url string) error {
				return triggertest.Add(ctx, url, c.without...)
			}, change)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Join(result.Harm, "; "), c.harm) {
				t.Errorf("harm: got %q, want %q", result.Harm, c.harm)
			}
		})
	}
}

// A person who authorizes every move without looking is no control: the scenario finds the
// devices that were moved.
func TestRun_FindsMovesThatAPersonAuthorizes(t *testing.T) {
	t.Parallel()
	result, err := settings().WithCarelessPerson(t.Context(), "compromised-model", command.ChangePolicy)
	if err != nil {
		t.Fatal(err)
	}
	if harm := strings.Join(result.Harm, "; "); !strings.HasSuffix(harm, "devices were moved to another policy") {
		t.Errorf("harm: got %q", harm)
	}
}

// What takes controls away is in no program.
func TestRelease_HasNoSwitch(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "../../../cmd/muster", "../../../cmd/muster-agent").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "triggertest") {
		t.Error("a program depends on triggertest")
	}
}
