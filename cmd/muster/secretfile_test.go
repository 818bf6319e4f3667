package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// plainSettings hold no secret: each is a name, a number, a public address, or names a file.
var plainSettings = []string{
	"MUSTER_LISTEN", "MUSTER_PUBLIC_URL", "MUSTER_READS_PER_MINUTE", "MUSTER_TRUSTED_PROXIES", "MUSTER_PRIVATE_PROVIDERS",
	"MUSTER_MAIL_FROM", "MUSTER_LOG_LEVEL", "MUSTER_LOG_FORMAT", "MUSTER_DRAIN_DELAY", "MUSTER_METRICS_LISTEN", "MUSTER_PPROF",
	"MUSTER_AGENT_APK_URL", "MUSTER_QR_SHORT_NAMES", "MUSTER_PLATFORM_ENDPOINT", "MUSTER_PLATFORM_PROJECT",
	"MUSTER_PLATFORM_SUBSCRIPTION", "MUSTER_URL", "MUSTER_WEBHOOK_NETWORKS",
	// The file's name is the setting.
	"MUSTER_KEY_FILE", "MUSTER_TLS_CERT", "MUSTER_TLS_KEY", "MUSTER_AGENT_APK", "MUSTER_PLATFORM_CREDENTIALS", "MUSTER_API_KEY_FILE",
}

// settings are the flags that a variable sets, by its name.
func settings(t *testing.T) map[string][]*kong.Flag {
	t.Helper()
	found := map[string][]*kong.Flag{}
	parser := newParser(io.Discard, io.Discard, func(int) {})
	err := kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			for _, name := range flag.Envs {
				found[name] = append(found[name], flag)
			}
		}
		return next(nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A new setting is a secret, which a file can hold, or is listed above.
func TestSettings_SecretsHaveFiles(t *testing.T) {
	t.Parallel()
	all := settings(t)
	for name, flags := range all {
		if !strings.HasPrefix(name, "MUSTER_") || slices.Contains(plainSettings, name) {
			continue
		}
		for _, flag := range flags {
			if all[name+"_FILE"] == nil && !flag.Tag.Has("secret") {
				t.Errorf("%s (--%s): add the tag secret, so that %s_FILE can hold it, or list it in plainSettings if it is no secret",
					name, flag.Name, name)
			}
		}
	}
	for _, name := range plainSettings {
		if all[name] == nil {
			t.Errorf("plainSettings lists %s, which no flag has", name)
		}
	}
	for _, name := range []string{"MUSTER_DATABASE", "MUSTER_SMTP_URL"} {
		if len(all[name]) == 0 || !all[name][0].Tag.Has("secret") {
			t.Errorf("%s is not a secret any more", name)
		}
	}
}

func TestSecretFiles_DatabaseAndMail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	database := "sqlite:" + filepath.Join(dir, "by-file.db")
	p := processes{t: t, dir: dir, env: []string{"MUSTER_DATABASE_FILE=" + write("database", database+"\n")}}
	p.run("company", "create", "--slug", "acme")
	if _, err := os.Stat(filepath.Join(dir, "by-file.db")); err != nil {
		t.Error(err)
	}
	// A flag is more exact than a variable.
	p.run("company", "create", "--slug", "acme", "--database", "sqlite:"+filepath.Join(dir, "other.db"))
	p.run("version") // no setting of this command is a secret
	for title, c := range map[string]struct{ variable, says string }{
		"both":    {"MUSTER_DATABASE=" + database, "both set"},
		"missing": {"MUSTER_DATABASE_FILE=" + filepath.Join(dir, "none"), "cannot read MUSTER_DATABASE_FILE"},
		"empty":   {"MUSTER_DATABASE_FILE=" + write("empty", "\n"), "is empty"},
		"lines":   {"MUSTER_DATABASE_FILE=" + write("lines", "a\nhunter2"), "in one line"},
		"mail":    {"MUSTER_SMTP_URL_FILE=" + write("mail", "http://u:hunter2@mail.test"), "MUSTER_SMTP_URL must be"},
	} {
		command := p.with(c.variable).command("serve")
		output := &strings.Builder{}
		command.Stderr = output
		if err := command.Run(); err == nil || !strings.Contains(output.String(), c.says) || strings.Contains(output.String(), "hunter2") {
			t.Errorf("%s: %v: %q, want %q and no secret", title, err, output, c.says)
		}
	}
}
