package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/surface/mcp"
	"github.com/musterhq/muster/internal/surface/rest"
	"github.com/musterhq/muster/internal/surface/web"
)

// controls says which of the company's controls are on.
func (f *filler) controls() string {
	c, ages := f.company.Settings.Controls, "of any age"
	if c.ApproverAge > 0 {
		ages = "older than " + phrase.Span(c.ApproverAge)
	}
	limit := "no limit of destructive commands"
	if l := c.DestructiveLimit; !l.Off() {
		limit = "at most " + l.Words() + " get a destructive command"
	}
	return fmt.Sprintf("%s; approval of policy changes: %s; authorization of destructive commands: %s; a person with an account %s may "+
		"approve and confirm",
		limit, strings.ToLower(string(cmp.Or(c.ApplyApproval, access.ApproveNone))), access.OnOff(c.DestructiveApproval), ages)
}

// introduce prints the addresses, the credentials and commands to try. Tests and people's scripts
// read this text: its first address must be the portal's, and its first key the one with every
// permission.
func (f *filler) introduce(ctx context.Context) {
	device := f.someDevice(ctx)
	address, api, key, assistant := f.service.PublicURL(), f.service.PublicURL()+rest.Prefix, f.memory.Key, f.memory.Assistant
	client := script.Must(json.MarshalIndent(map[string]any{"mcpServers": map[string]any{"muster": map[string]any{
		"type": "http", "url": address + mcp.Path, "headers": map[string]string{"X-API-Key": assistant},
	}}}, "  ", "  "))
	f.say("\nMuster is up. Stop it with Ctrl-C; start it again and it goes on where it stopped.\n")
	f.say("  Portal     %s", address)
	f.say("  Open       %s%s?code=%s  (signs in once, within the hour)", address, web.OncePath, f.link.code)
	f.say("  Sign in    %s with the password %s", portalUser, f.memory.Password)
	if f.memory.Second != "" {
		f.say("  Second     %s with the password %s  (another administrator, who can confirm and approve)", secondUser, f.memory.Second)
	}
	f.say("  API        %s  (reference: %s/api/docs)", api, address)
	f.say("  Emulator   %s", f.emulator.URL())
	f.say("  API key    %s  (may do everything)", key)
	f.say("  API key    %s  (may read)", f.memory.Observer)
	f.say("  API key    %s  (for an assistant: reads, sends commands, proposes and applies policy changes; erases nothing)", assistant)
	f.say("  Controls   %s", f.controls())
	f.say("\nConnect an assistant over MCP:\n\n  %s", client)
	f.say("\n  One that starts programs instead: MUSTER_URL=%s MUSTER_API_KEY=%s muster mcp", address, assistant)
	f.say("\nThree commands to try:\n")
	f.say("  curl -H 'X-API-Key: %s' '%s/assets?status=ACTIVE&size=3'", key, api)
	f.say("  curl -H 'X-API-Key: %s' -X POST %s/assets/%s/commands/lock", key, api, device.ID)
	f.say("  curl -H 'X-API-Key: %s' %s/assets/%s/commands\n", key, api, device.ID)
}
