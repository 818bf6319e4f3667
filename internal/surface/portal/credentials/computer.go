package credentials

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/surface/web"
)

// ComputerPath is the page to which `muster login` sends a person. They allow a key for
// their computer, and a code goes back to it, which it exchanges for the key (exchange.go).
const ComputerPath = frame.AccessPath + "/computer"

const (
	// codeLife is how long a code may be exchanged, and computerKeyLife how long the key
	// is good.
	codeLife        = time.Minute
	computerKeyLife = 90 * 24 * time.Hour
	maxComputerName = 60
	maxState        = 128
)

// askedKey is what `muster login` asks for.
type askedKey struct {
	Redirect  string // where the code goes; empty: the person carries it
	State     string // goes back with the code
	Challenge string // SHA-256 of the verifier that the computer keeps, base64url
	Name      string // the computer's
	Preset    string // what the person chose
	Problem   string
	Choices   []presetChoice
}

// presetChoice is a preset on offer.
type presetChoice struct {
	access.Preset
	Reason string // why it cannot be chosen; empty: it can
}

var (
	challengeShape = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	stateShape     = regexp.MustCompile(`^[A-Za-z0-9_.~-]*$`)
)

// readAsked reads and checks what is asked for. Only a program on the person's own computer
// gets a code, so that nothing else can be made of this page.
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

// isOwnComputer reports whether an address is http://127.0.0.1:PORT/… or http://[::1]:PORT/…
func isOwnComputer(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" ||
		u.String() != address {
		return false
	}
	at, err := netip.ParseAddrPort(u.Host)
	loopback := at.Addr() == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || at.Addr() == netip.IPv6Loopback()
	return err == nil && loopback && at.Port() != 0 && at.String() == u.Host
}

// keyName is what the computer's key is called.
func (a askedKey) keyName() string {
	if a.Name == "" {
		return "muster login"
	}
	return "muster login on " + a.Name
}

func (a askedKey) page() string {
	return ComputerPath + "?" + url.Values{"redirect": {a.Redirect}, "state": {a.State}, "challenge": {a.Challenge},
		"name": {a.Name}}.Encode()
}

func presetChoices(u account.User) (all []presetChoice) {
	for _, one := range access.Presets() {
		c := presetChoice{Preset: one}
		if err := u.MayGrant(one.Permissions); err != nil {
			c.Reason = frame.Sentence(fault.From(err).Detail)
		}
		all = append(all, c)
	}
	return all
}

// askComputer shows what a computer asks for.
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

// grant is what a code stands for: a key that may be made for the person as long as the
// session goes on in which they allowed it.
type grant struct {
	Challenge string            `json:"challenge"`
	Name      string            `json:"name"`
	Allowed   access.Permission `json:"permissions"`
	Session   string            `json:"session"` // the hash of its token, hexadecimal
}

// allowComputer gives the computer a code. The one before ends.
func (s *Section) allowComputer(v *frame.Visit) error {
	asked, err := readAsked(v.Form)
	if err != nil {
		return err
	}
	chosen, ok := access.Preset{}, false
	for _, one := range access.Presets() {
		if one.Name == asked.Preset {
			chosen, ok = one, true
		}
	}
	if !ok {
		asked.Problem = "Choose what the computer may do."
		return s.showComputer(v, http.StatusUnprocessableEntity, asked)
	}
	if err := v.User.MayGrant(chosen.Permissions); err != nil {
		asked.Problem = frame.Sentence(fault.From(err).Detail)
		return s.showComputer(v, http.StatusForbidden, asked)
	}
	data, err := json.Marshal(grant{asked.Challenge, asked.keyName(), chosen.Permissions, hex.EncodeToString(v.Session.TokenHash[:])})
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
