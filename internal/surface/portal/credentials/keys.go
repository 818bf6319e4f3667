package credentials

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/slice"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// keyRow is a key in the table.
type keyRow struct {
	apikey.Key
	CreatedByName string
	Tone          frame.Tone
	State         string
	Live          bool
	Hours         []int64 // what it changed in each of the last 24 hours
	Changes       int64
	Left          int // of the ten calls a minute
}

const hours = 24

func (s *Section) listKeys(v *frame.Visit, page *view, people map[string]account.User) error {
	keys, err := s.Keys.Store.Keys(v.Context(), v.Company.ID)
	if err != nil {
		return err
	}
	since := v.Now.UTC().Truncate(time.Hour).Add(-(hours - 1) * time.Hour)
	calls, err := s.Usage.ActivityOfActors(v.Context(), v.Company.ID, access.APIKey, since, time.Hour)
	if err != nil {
		return err
	}
	var budgets []string
	for _, k := range keys {
		if k.Usable(v.Now) {
			budgets = append(budgets, access.Principal{Kind: access.APIKey, ID: k.ID}.BudgetKey())
		}
	}
	used, err := s.Usage.BudgetUsed(v.Context(), budgets, operation.BudgetWindow, v.Now)
	if err != nil {
		return err
	}
	for _, k := range keys {
		row := keyRow{Key: k, Live: k.Usable(v.Now), CreatedByName: k.CreatedBy, Hours: perHour(calls[k.ID], since),
			Left: max(0, operation.BudgetCalls-used[access.Principal{Kind: access.APIKey, ID: k.ID}.BudgetKey()])}
		if u, ok := people[k.CreatedBy]; ok {
			row.CreatedByName = u.Name
		}
		for _, n := range row.Hours {
			row.Changes += n
		}
		row.Tone, row.State = stateOf(k, v.Now)
		if !row.Live && !page.All {
			page.Ended++
			continue
		}
		page.Keys = append(page.Keys, row)
	}
	return nil
}

func perHour(buckets []activity.Bucket, since time.Time) []int64 {
	line := make([]int64, hours)
	for _, b := range buckets {
		if i := int(b.From.Sub(since) / time.Hour); i >= 0 && i < hours {
			line[i] = b.Count
		}
	}
	return line
}

func stateOf(k apikey.Key, now time.Time) (frame.Tone, string) {
	switch {
	case !k.RevokedAt.IsZero():
		return frame.Bad, "Revoked"
	case !k.Usable(now):
		return frame.Idle, "Expired"
	case !k.ExpiresAt.IsZero() && k.ExpiresAt.Sub(now) < 7*24*time.Hour:
		return frame.Warn, "Expires soon"
	}
	return frame.OK, "Usable"
}

// keyForm is the form of a new key.
type keyForm struct {
	Name    string
	Chosen  access.Permission
	Expires string
	// Networks and PerDay are as they were typed.
	Networks, PerDay string
	Wrong            map[string]string
	Problem          string
	Choices          []choice
}

// choice is one permission on the form.
type choice struct {
	Permission access.Permission
	Reason     string // why it cannot be chosen; empty: it can
}

// lifetimes are the expiries on offer, by their values.
func lifetimes() []lifetime {
	const day = 24 * time.Hour
	return []lifetime{{"90", "In 90 days", 90 * day}, {"1", "In one day", day}, {"7", "In 7 days", 7 * day}, {"30", "In 30 days", 30 * day},
		{"365", "In one year", 365 * day}, {"never", "Never", 0}}
}

type lifetime struct {
	Value, Label string
	Lasts        time.Duration
}

// choices are all permissions, grayed with the reason where the person may not
// hand them out (contract 5.3).
func choices(u account.User) (all []choice) {
	for _, p := range access.Each(access.All) {
		c := choice{Permission: p}
		switch err := u.MayGrant(p); {
		case err == nil:
		case u.Rights.Permissions().Has(p):
			c.Reason = frame.Sentence(fault.From(err).Detail)
		default:
			c.Reason = "You do not have this permission yourself."
		}
		all = append(all, c)
	}
	return all
}

func (s *Section) newKey(v *frame.Visit) error {
	asked := slice.First(access.Presets(), func(p access.Preset) bool { return p.Name == v.Query().Get("preset") })
	return s.showForm(v, http.StatusOK, keyForm{Chosen: asked.Permissions})
}

// showForm shows the form: one form makes one key.
func (s *Section) showForm(v *frame.Visit, status int, form keyForm) error {
	form.Choices = choices(v.User)
	if form.Expires == "" {
		form.Expires = lifetimes()[0].Value
	}
	return v.ShowStatus(status, "New API key", frame.AccessPath, keyPage(v, form))
}

// writes reports whether the form's key may do more than read.
func writes(v *frame.Visit) (bool, error) {
	chosen, err := access.ParsePermissions(v.Form["permission"])
	return err == nil && chosen.Writes(), nil // what cannot be read makes no key
}

func (s *Section) createKey(v *frame.Visit) error {
	form := keyForm{Name: v.Form.Get("name"), Expires: v.Form.Get("expires"), Networks: v.Form.Get("networks"),
		PerDay: v.Form.Get("perDay")}
	chosen, err := access.ParsePermissions(v.Form["permission"])
	if err != nil {
		return fault.Invalid(err.Error())
	}
	form.Chosen = chosen.WithImplied() // a key that may only command can do nothing
	i := slices.IndexFunc(lifetimes(), func(l lifetime) bool { return l.Value == form.Expires })
	if i < 0 {
		return fault.Invalid("choose when the key expires", fault.Field{Field: "expires", Message: "must be one of those on offer"})
	}
	networks, perDay, err := form.limits()
	if err != nil {
		form.Wrong, form.Problem = frame.Fields(err), frame.Sentence(fault.From(err).Detail)
		return s.showForm(v, http.StatusUnprocessableEntity, form)
	}
	if answered, err := v.SentBefore(s.Steps, account.NewKeyForm, frame.AccessPath,
		"look for the key in the list. Its secret is not shown again."); answered || err != nil {
		return err
	}
	key, text, err := s.Keys.CreateForUser(v.Context(), v.User,
		apikey.Request{Name: form.Name, Permissions: form.Chosen, ExpiresIn: lifetimes()[i].Lasts,
			Networks: networks, DevicesPerDay: perDay})
	switch code := fault.CodeOf(err); code {
	case "":
		return v.Show("Your new API key", frame.AccessPath, shownOnce(v, key, text))
	case fault.InvalidArguments, fault.Forbidden:
		form.Wrong, form.Problem = frame.Fields(err), frame.Sentence(fault.From(err).Detail)
		return s.showForm(v, frame.Either(code == fault.Forbidden, http.StatusForbidden, http.StatusUnprocessableEntity), form)
	default:
		return err
	}
}

// limits reads what limits the key.
func (f keyForm) limits() (networks []netip.Prefix, perDay int, err error) {
	if networks, err = apikey.ParseNetworks(strings.FieldsFunc(f.Networks, func(r rune) bool {
		return r == ',' || unicode.IsSpace(r)
	})); err != nil {
		return nil, 0, err
	}
	if text := strings.TrimSpace(f.PerDay); text != "" {
		if perDay, err = strconv.Atoi(text); err != nil || perDay < 1 || perDay > apikey.MaxDevicesPerDay {
			return nil, 0, fault.Invalid("the number of devices cannot be used",
				fault.Field{Field: "devicesPerDay", Message: "must be from 1 to 1000000, or empty"})
		}
	}
	return networks, perDay, nil
}

// limitTexts are what limits a key.
func limitTexts(k apikey.Key) []string {
	texts := k.NetworkTexts()
	if k.DevicesPerDay > 0 {
		texts = append(texts, frame.Count(k.DevicesPerDay, "device", "devices")+" a day")
	}
	return texts
}

func (s *Section) revokeKey(v *frame.Visit) error {
	key, err := s.Keys.Revoke(v.Context(), v.Company.ID, v.PathValue("key"))
	return v.Finish(frame.AccessPath, err, "The key "+key.Name+" is revoked: it is refused from now on.")
}

// mcpConfig is the configuration of an MCP client with the key.
func mcpConfig(publicURL, key string) string {
	type server struct {
		Type    string            `json:"type"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
	}
	text, _ := json.MarshalIndent(map[string]any{"mcpServers": map[string]server{
		"muster": {"http", publicURL + "/mcp", map[string]string{"X-API-Key": key}}}}, "", "  ") // texts always encode
	return string(text)
}

func curlText(publicURL, key string) string {
	return `curl -H "X-API-Key: ` + key + `" ` + publicURL + "/api/v1/assets"
}
