package credentials

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/surface/web"
)

// ComputerPath is the page that `muster login` opens in a person's browser. The person allows an API key
// for the computer. The page sends the program a code, which it exchanges for the key (exchange.go).
const ComputerPath = frame.AccessPath + "/computer"

const (
	codeLife        = time.Minute         // how long a code can be exchanged
	computerKeyLife = 90 * 24 * time.Hour // when the key expires, after the exchange
	maxComputerName = 60                  // characters
	maxState        = 128                 // bytes
)

// askedKey is the request of `muster login` for a key, with what the page shows of it.
type askedKey struct {
	Redirect  string // the program's address, which gets the code; empty: the person copies the code into the terminal
	State     string // is returned to the program with the code
	Challenge string // SHA-256 of the verifier that the program keeps, base64url
	Name      string // of the computer
	Preset    string // the name of the permissions that the person chose
	Problem   string // with the person's choice; empty: none
	Choices   []presetChoice
}

// presetChoice is a set of permissions that the page lists.
type presetChoice struct {
	access.Preset
	Reason string // why the person cannot choose it; empty: they can
}

var (
	challengeShape = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	stateShape     = regexp.MustCompile(`^[A-Za-z0-9_.~-]*$`)
)

// readAsked reads a request and checks it. A redirect is allowed to the person's own computer only, so that
// a link to this page cannot send a code to another site.
func readAsked(form url.Values) (askedKey, error) {
	a := askedKey{Redirect: form.Get("redirect"), State: form.Get("state"), Challenge: form.Get("challenge"), Name: form.Get("name"),
		Preset: form.Get("preset")}
	switch {
	case !challengeShape.MatchString(a.Challenge):
		return a, fault.Invalid("this page is opened by `muster login`: start it on your computer")
	case len(a.State) > maxState || !stateShape.MatchString(a.State):
		return a, fault.Invalid("the state in the address cannot be used: start `muster login` again")
	case a.Name != "" && !resource.IsLabel(a.Name, maxComputerName):
		return a, fault.Invalid("the computer's name in the address cannot be used: start `muster login` again")
	case a.Redirect != "" && !isOwnComputer(a.Redirect):
		return a, fault.Invalid("this address would send the code elsewhere than to your own computer: nothing was allowed. Start " +
			"`muster login` again")
	}
	return a, nil
}

// isOwnComputer reports whether an address is http://127.0.0.1:PORT/… or http://[::1]:PORT/…, without a user,
// a query or a fragment.
func isOwnComputer(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" ||
		u.String() != address {
		return false
	}
	host, err := netip.ParseAddrPort(u.Host)
	loopback := host.Addr() == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || host.Addr() == netip.IPv6Loopback()
	return err == nil && loopback && host.Port() != 0 && host.String() == u.Host
}

// keyName is the name of the computer's key in the portal.
func (a askedKey) keyName() string {
	return frame.Either(a.Name == "", "muster login", "muster login on "+a.Name)
}

// page is the address of the page with the request, for the proof of identity to return to.
func (a askedKey) page() string {
	return ComputerPath + "?" + url.Values{"redirect": {a.Redirect}, "state": {a.State}, "challenge": {a.Challenge},
		"name": {a.Name}}.Encode()
}

func presetChoices(u account.User) (all []presetChoice) {
	for _, preset := range access.Presets() {
		c := presetChoice{Preset: preset}
		if err := u.MayGrant(preset.Permissions); err != nil {
			c.Reason = frame.Sentence(fault.From(err).Detail)
		}
		all = append(all, c)
	}
	return all
}

// askComputer shows the page with the request.
func (s *Section) askComputer(v *frame.Visit) error {
	asked, err := readAsked(v.Query())
	if err != nil {
		return err
	}
	return s.showComputer(v, http.StatusOK, asked)
}

func (s *Section) showComputer(v *frame.Visit, status int, asked askedKey) error {
	asked.Choices = presetChoices(v.User)
	return v.ShowStatus(status, "Log in on this computer", frame.AccessPath, computerPage(v, asked))
}

// grant is stored with a code: the key that the exchange may make, while the session lasts in which the person
// allowed it.
type grant struct {
	Challenge string            `json:"challenge"`
	Name      string            `json:"name"` // of the key
	Allowed   access.Permission `json:"permissions"`
	Session   string            `json:"session"` // the hash of its token, hexadecimal
}

// allowComputer makes a code for the key that the person allows, and sends it to the program. The person's
// earlier code is no longer valid.
func (s *Section) allowComputer(v *frame.Visit) error {
	asked, err := readAsked(v.Form)
	if err != nil {
		return err
	}
	choices := presetChoices(v.User)
	i := slices.IndexFunc(choices, func(c presetChoice) bool { return c.Name == asked.Preset })
	if i < 0 {
		asked.Problem = "Choose what the computer may do."
		return s.showComputer(v, http.StatusUnprocessableEntity, asked)
	}
	if asked.Problem = choices[i].Reason; asked.Problem != "" {
		return s.showComputer(v, http.StatusForbidden, asked)
	}
	data, err := json.Marshal(grant{asked.Challenge, asked.keyName(), choices[i].Permissions, hex.EncodeToString(v.Session.TokenHash[:])})
	if err != nil {
		return err
	}
	if err := s.Steps.DropSteps(v.Context(), v.User.ID, account.ComputerCode); err != nil {
		return err
	}
	code, err := account.Begin(v.Context(), s.Steps,
		account.PendingSignIn{Kind: account.ComputerCode, CompanyID: v.Company.ID, UserID: v.User.ID,
			Data: data, ExpiresAt: v.Now.Add(codeLife)})
	if err != nil {
		return err
	}
	if asked.Redirect == "" {
		return v.Show("Your code", frame.AccessPath, codePage(v, code))
	}
	web.Answer(v.Writer(), v.Request(), s.Log, http.StatusOK,
		web.Onward("Access allowed", "You go back to the program on your computer. If nothing is there, it runs on another one: copy the "+
			"address of the page that cannot be opened into its terminal.",
			asked.Redirect+"?"+url.Values{"code": {code}, "state": {asked.State}}.Encode()))
	return nil
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

func days(d time.Duration) string { return strconv.Itoa(int(d / (24 * time.Hour))) }
