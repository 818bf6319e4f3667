package portal_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/servertest"
)

var markup = regexp.MustCompile(`(?s)<(script|style)[^>]*>.*?</(?:script|style)>|<[^>]+>`)

// plain is the text of a page.
func plain(page string) string {
	return strings.Join(strings.Fields(html.UnescapeString(markup.ReplaceAllString(page, " "))), " ")
}

// A command is reported once, by what became of it, on the overview, in the log and
// on its device's page; and a key's count counts it once.
func TestActivity_SaysWhatBecameOfCommand(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		outcome string
		settled string
		says    string
	}{
		{emulator.OutcomeSuccess, "SUCCESS", " locked "},
		{emulator.OutcomeError, "ERROR", " tried to lock "},
		{emulator.OutcomeHold, "", " asked to lock "},
	} {
		t.Run(test.outcome, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			device := o.Devices(o.replica, servertest.FullyManaged(), 1)[0]
			o.Behave(device, emulator.Behavior{CommandOutcome: test.outcome})
			key, text := o.KeyRow(o.Company, access.All)
			client := o.replica.As(text)
			client.Post("/assets/"+device.AssetID+"/commands/lock", nil).Want(t, http.StatusOK)
			if test.settled != "" {
				o.Settled(client, device.AssetID, test.settled)
			}
			admin := o.person(t, account.Admin)
			for _, path := range []string{"/", "/activity?area=command", "/devices/" + device.AssetID + "/activity"} {
				page := plain(o.get(t, admin, path, http.StatusOK))
				for _, phrase := range []string{" locked ", " tried to lock ", " asked to lock ", " may have locked "} {
					want := 0
					if phrase == test.says {
						want = 1
					}
					if n := strings.Count(page, key.Prefix+phrase); n != want {
						t.Errorf("%s says %q %d times, want %d", path, phrase, n, want)
					}
				}
			}
			if page := o.get(t, admin, "/access", http.StatusOK); !strings.Contains(page, `"1 change in the last 24 hours"`) {
				t.Error("the keys' page does not count one change")
			}
		})
	}
}

// Each choice of the log's filters has a word.
func TestActivity_NamesEveryChoice(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	page := o.get(t, o.person(t, account.Admin), "/activity", http.StatusOK)
	choices := regexp.MustCompile(`<option[^>]*>([^<]*)</option>`).FindAllStringSubmatch(page, -1)
	if len(choices) < 12 {
		t.Errorf("%d choices", len(choices))
	}
	for _, c := range choices {
		if strings.TrimSpace(c[1]) == "" {
			t.Errorf("%s has no word", c[0])
		}
	}
}
