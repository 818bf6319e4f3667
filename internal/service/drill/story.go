package drill

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/wait"
)

// Story shows what the product is for: an assistant asks for a wipe and is refused, a
// person approves it with a passkey, the command runs, and the evidence verifies.
type Story struct {
	Settings
	Out   io.Writer
	Pause time.Duration // after each heading, for a reader
	// Command runs another command of the program and writes to out what it prints.
	Command func(out io.Writer, args ...string) error
}

// storyRun is a story under way.
type storyRun struct {
	*drill
	Story
	device        asset.Asset
	authorization string // its id
}

// Tell plays the story on a company of its own, in a temporary folder that it removes. It
// calls the surfaces that assistants and people use. The error says what went otherwise.
func (s Story) Tell(ctx context.Context) error {
	_, err := s.company(ctx, "story", func(ctx context.Context, d *drill) {
		t := &storyRun{drill: d, Story: s}
		t.setUp(ctx)
		t.ask(ctx)
		t.evidence(ctx)
	})
	return err
}

func (t *storyRun) say(format string, args ...any) { fmt.Fprintf(t.Out, format+"\n", args...) }

// part prints a heading and pauses.
func (t *storyRun) part(ctx context.Context, format string, args ...any) {
	t.say("")
	t.say("# "+format, args...)
	wait.For(ctx, t.Pause)
}

// setUp has the company ask a person about each destructive command.
func (t *storyRun) setUp(ctx context.Context) {
	settings, devices := t.look(ctx)
	settings.Controls.DestructiveApproval = true
	at := slices.IndexFunc(devices, func(a asset.Asset) bool {
		return a.Device.Management == asset.Platform && command.Eligible(command.WipeCompanyData, a, false) == nil
	})
	if at < 0 {
		script.Fail("no device can be wiped")
	}
	t.device = devices[at]
	t.part(ctx, "Acme lets assistants send commands. A person authorizes each one that destroys something.")
	t.say("%d simulated devices are enrolled. The service runs at %s.", len(devices), t.Service.PublicURL())
	t.controls(ctx, settings.Controls)
}

// ask has the assistant ask, a person decide, and the assistant ask again.
func (t *storyRun) ask(ctx context.Context) {
	assistant := t.tools(ctx, "X-API-Key", t.Key, nil)
	defer func() { _ = assistant.session.Close() }() // everything was answered
	t.part(ctx, "An assistant was told that %s is stolen. Over MCP, it calls", t.device.Identification)
	args := map[string]any{"assetId": t.device.ID}
	t.say("wipe_device {\"assetId\": %q}", t.device.ID)
	asked := assistant.call(ctx, "wipe_device", args, "")
	if asked.approvalURL == "" {
		script.Fail("the assistant was not sent to a person: %s", asked.text)
	}
	t.say("refused: %s", asked.detail)
	t.authorization = path.Base(asked.approvalURL)
	t.decide(ctx, asked.approvalURL)
	t.part(ctx, "The assistant makes the same call again.")
	t.say("wipe_device {\"assetId\": %q}", t.device.ID)
	got := assistant.call(ctx, "wipe_device", args, "")
	if got.code != "" {
		script.Fail("the wipe is refused although it was authorized: %s", got.detail)
	}
	t.say("%s: the command was sent", got.result["status"])
	t.erased(ctx)
}

// heading is the title of a page.
var heading = regexp.MustCompile(`(?s)<h1[^>]*>(.*?)</h1>`)

// decide has a person open the address and sign.
func (t *storyRun) decide(ctx context.Context, address string) {
	person := t.signIn(ctx)
	page := person.Get(ctx, address)
	t.part(ctx, "Ada, an administrator, opens the address. The page is titled")
	if found := heading.FindStringSubmatch(page.Body); found != nil {
		t.say("%s", text(found[1]))
	}
	if got := outcome(person.Decide(ctx, address)); got.code != "" {
		script.Fail("the wipe cannot be authorized: %s", got.detail)
	}
	t.part(ctx, "She signs with her passkey. The document that she signs names the device, the command and the assistant's key.")
}

// text is HTML without its marks.
func text(of string) string {
	return strings.Join(strings.Fields(html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(of, " "))), " ")
}

// How long a device may take to erase itself.
const (
	erasePatience = time.Minute
	eraseGlance   = 50 * time.Millisecond
)

// erased waits until the command has succeeded. It fails with the outcome of one that failed.
func (t *storyRun) erased(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, erasePatience)
	defer cancel()
	for {
		if commands := t.history(ctx, t.device.ID); len(commands) > 0 && commands[0].State.Final() {
			if commands[0].State == command.Failed {
				script.Fail("the device did not erase itself: %s", commands[0].Outcome)
			}
			t.part(ctx, "The device reports that it erased itself.")
			t.say("%s: SUCCESS", t.device.Identification)
			return
		}
		if !wait.For(ctx, eraseGlance) {
			script.Fail("the device did not erase itself: %w", ctx.Err())
		}
	}
}

// evidence verifies what was recorded, with the commands that an auditor uses.
func (t *storyRun) evidence(ctx context.Context) {
	script.Need(script.Must(t.Admin.Chain(ctx, t.Store, "")).Seal(ctx)) // the service does so every few seconds
	at := []string{"--database", t.Store.Database, "--company", t.Company.Slug}
	t.part(ctx, "The evidence: each entry of the activity log holds the hash of the one before, and the chain is signed.")
	t.run(t.Out, append([]string{"activity", "verify"}, at...))
	t.part(ctx, "What Ada signed can be checked without the database: an exported decision, and the keys to trust.")
	signed, keys := filepath.Join(t.dir, "decision.json"), filepath.Join(t.dir, "keys.json")
	t.into(signed, append([]string{"approval", "export", t.authorization}, at...))
	t.into(keys, append([]string{"approval", "keys", "--public-url", t.Service.PublicURL()}, at...))
	t.run(t.Out, []string{"approval", "verify", signed, "--trust", keys})
}

// run shows a command and runs it.
func (t *storyRun) run(out io.Writer, args []string) {
	t.say("$ muster %s", strings.Join(args, " "))
	script.Need(t.Command(out, args...))
}

// into runs a command and keeps what it prints in a file.
func (t *storyRun) into(file string, args []string) {
	var printed bytes.Buffer
	t.say("$ muster %s > %s", strings.Join(args, " "), file)
	script.Need(t.Command(&printed, args...))
	script.Need(os.WriteFile(file, printed.Bytes(), 0o600))
}
