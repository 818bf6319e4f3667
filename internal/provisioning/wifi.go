package provisioning

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/musterhq/muster/internal/operation"
)

// Security is how a Wi-Fi network is protected.
type Security string

// The kinds of protection that a code can carry (contract 4.4).
const (
	Open Security = "NONE"
	WPA  Security = "WPA"
	WEP  Security = "WEP"
)

// minWPAPassword is in bytes of UTF-8.
const minWPAPassword = 8

// Wifi is the network that a device joins to enroll. Its zero value is none.
// It prints without the password.
type Wifi struct {
	SSID     string
	Password string
	Security Security
	Hidden   bool
}

// String keeps the password out of formatted text.
func (w Wifi) String() string { return fmt.Sprintf("{%q %s [secret]}", w.SSID, w.Security) }

// GoString keeps the password out of %#v.
func (w Wifi) GoString() string { return w.String() }

// rules are the rules about more than one of the Wi-Fi arguments, in the one
// place that both checks and describes them. A field that was not given is nil.
func rules(r *operation.Rules, ssid, password, security *string, hidden *bool) {
	const needsName = "needs wifiSsid"
	r.Must("wifiPassword", needsName, password == nil || ssid != nil)
	r.Must("wifiSecurity", needsName, security == nil || ssid != nil)
	r.Must("wifiHidden", needsName, hidden == nil || ssid != nil)

	kind := securityOf(password, security)
	r.Must("wifiSecurity", "NONE takes no wifiPassword", kind != Open || password == nil)
	r.Must("wifiPassword", "is required with WPA and WEP", kind == Open || password != nil)
	if password == nil {
		password = new(string)
		kind = Open
	}
	r.Must("wifiPassword", "must have at least 8 bytes with WPA", kind != WPA || len(*password) >= minWPAPassword)
	r.Must("wifiPassword", "must be 5 or 13 ASCII characters or 10 or 26 hexadecimal digits with WEP", kind != WEP || isWEPKey(*password))
}

// securityOf is the protection asked for: WPA when a password is given, else
// NONE, unless said otherwise.
func securityOf(password, security *string) Security {
	switch {
	case security != nil:
		return Security(*security)
	case password != nil:
		return WPA
	}
	return Open
}

func isWEPKey(key string) bool {
	const hex = "0123456789abcdefABCDEF"
	switch len(key) {
	case 5, 13:
		return strings.IndexFunc(key, func(r rune) bool { return r > 0x7f }) < 0
	case 10, 26:
		return strings.Trim(key, hex) == ""
	}
	return false
}

const extra = "android.app.extra.PROVISIONING_WIFI_"

// Merge returns the payload of a code with the network's keys added, in the
// setup wizard's own names. Everything else in the payload stays as it is, in
// its order; without a network the payload is returned untouched.
func Merge(payload []byte, w Wifi) ([]byte, error) {
	if w.SSID == "" {
		return payload, nil
	}
	in := jsontext.NewDecoder(bytes.NewReader(payload))
	if token, err := in.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, errors.New("the payload of the enrollment token is not a JSON object")
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for in.PeekKind() == '"' {
		key, keyErr := in.ReadValue()
		key = bytes.Clone(key)
		value, err := in.ReadValue()
		if err = errors.Join(keyErr, err); err != nil {
			return nil, errors.New("the payload of the enrollment token is not well-formed JSON")
		}
		if bytes.HasPrefix(key, []byte(`"`+extra)) {
			continue
		}
		out.Write(key)
		out.WriteByte(':')
		out.Write(value)
		out.WriteByte(',')
	}
	if token, err := in.ReadToken(); err != nil || token.Kind() != '}' {
		return nil, errors.New("the payload of the enrollment token is not well-formed JSON")
	}
	out.Write(w.members())
	out.WriteByte('}')
	return out.Bytes(), nil
}

// members are the network's keys and values, between commas.
func (w Wifi) members() []byte {
	if w.Security = cmp.Or(w.Security, Open); w.Security == Open {
		w.Password = ""
	}
	out, _ := jsonv2.Marshal(struct { // valid UTF-8, by the rules
		SSID     string   `json:"android.app.extra.PROVISIONING_WIFI_SSID"`
		Security Security `json:"android.app.extra.PROVISIONING_WIFI_SECURITY_TYPE"`
		Password string   `json:"android.app.extra.PROVISIONING_WIFI_PASSWORD,omitempty"`
		Hidden   bool     `json:"android.app.extra.PROVISIONING_WIFI_HIDDEN"`
	}{w.SSID, w.Security, w.Password, w.Hidden})
	return out[1 : len(out)-1]
}
