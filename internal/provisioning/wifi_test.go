package provisioning_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/provisioning"
	"pgregory.net/rapid"
)

// broken returns the fields that the arguments break rules of.
func broken(a provisioning.Args) []string {
	members := map[string]any{"policyId": "x"}
	if a.WifiSSID != nil {
		members["wifiSsid"] = *a.WifiSSID
	}
	if a.WifiPassword != nil {
		members["wifiPassword"] = *a.WifiPassword
	}
	if a.WifiSecurity != nil {
		members["wifiSecurity"] = *a.WifiSecurity
	}
	if a.WifiHidden != nil {
		members["wifiHidden"] = *a.WifiHidden
	}
	text, _ := json.Marshal(members) // texts and booleans
	var r operation.Registry
	operation.Define(&r, operation.Operation{Name: "check", Method: "POST", Path: "/{policyId}"},
		func(context.Context, operation.Call, provisioning.Args) (bool, error) { return true, nil })
	out := operation.NewKernel(operation.Config{Budgets: operation.Budgets{Uncounted: true}, Now: time.Now}).
		Run(context.Background(), r.All()[0], caller(), operation.Meta{}, operation.Flat(text))
	var fields []string
	if out.Fault != nil {
		for _, f := range out.Fault.Fields {
			fields = append(fields, f.Field)
		}
	}
	return fields
}

func TestWifi_Rules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args provisioning.Args
		want string // a field at fault; empty: none
	}{
		{"nothing", provisioning.Args{}, ""},
		{"open", provisioning.Args{WifiSSID: new("guest")}, ""},
		{"open, said so", provisioning.Args{WifiSSID: new("guest"), WifiSecurity: new("NONE")}, ""},
		{"hidden", provisioning.Args{WifiSSID: new("guest"), WifiHidden: new(true)}, ""},
		{"spaces around", provisioning.Args{WifiSSID: new("  guest ")}, ""},
		{"spaces alone", provisioning.Args{WifiSSID: new(" ")}, ""},
		{"control character in the name", provisioning.Args{WifiSSID: new("a\x00b")}, "wifiSsid"},
		{"control character in the password", provisioning.Args{WifiSSID: new("x"), WifiPassword: new("1234567\n")}, "wifiPassword"},
		{"empty name", provisioning.Args{WifiSSID: new("")}, "wifiSsid"},
		{"32 bytes", provisioning.Args{WifiSSID: new(strings.Repeat("ä", 16))}, ""},
		{"33 bytes in 17 characters", provisioning.Args{WifiSSID: new(strings.Repeat("ä", 16) + "b")}, "wifiSsid"},
		{"WPA by default", provisioning.Args{WifiSSID: new("x"), WifiPassword: new("12345678")}, ""},
		{"WPA, 7 bytes", provisioning.Args{WifiSSID: new("x"), WifiPassword: new("1234567")}, "wifiPassword"},
		{"WPA, 8 bytes in 4 characters", provisioning.Args{WifiSSID: new("x"), WifiPassword: new("ääää")}, ""},
		{"WPA, 63 bytes", provisioning.Args{WifiSSID: new("x"), WifiPassword: new(strings.Repeat("p", 63))}, ""},
		{"WPA, 64 bytes", provisioning.Args{WifiSSID: new("x"), WifiPassword: new(strings.Repeat("p", 64))}, "wifiPassword"},
		{"WPA, 64 bytes in 32 characters", provisioning.Args{WifiSSID: new("x"), WifiPassword: new(strings.Repeat("ä", 32))},
			"wifiPassword"},
		{"WPA without password", provisioning.Args{WifiSSID: new("x"), WifiSecurity: new("WPA")}, "wifiPassword"},
		{"WPA, empty password", provisioning.Args{WifiSSID: new("x"), WifiPassword: new("")}, "wifiPassword"},
		{"NONE with password", provisioning.Args{WifiSSID: new("x"), WifiSecurity: new("NONE"), WifiPassword: new("12345678")},
			"wifiSecurity"},
		{"NONE with empty password", provisioning.Args{WifiSSID: new("x"), WifiSecurity: new("NONE"), WifiPassword: new("")},
			"wifiSecurity"},
		{"WEP without password", provisioning.Args{WifiSSID: new("x"), WifiSecurity: new("WEP")}, "wifiPassword"},
		{"WEP, 5 ASCII", wep("abcde"), ""},
		{"WEP, 13 ASCII", wep("abcdefghijklm"), ""},
		{"WEP, 10 hex", wep("0123456aBC"), ""},
		{"WEP, 26 hex", wep("0123456789abcdefABCDEF0123"), ""},
		{"WEP, 10 not hex", wep("012345678g"), "wifiPassword"},
		{"WEP, 4", wep("abcd"), "wifiPassword"},
		{"WEP, 6", wep("abcdef"), "wifiPassword"},
		{"WEP, 5 characters not ASCII", wep("äbcde"), "wifiPassword"},
		{"WEP, 5 bytes not ASCII", wep("äbcd"), "wifiPassword"},
		{"password alone", provisioning.Args{WifiPassword: new("12345678")}, "wifiPassword"},
		{"security alone", provisioning.Args{WifiSecurity: new("NONE")}, "wifiSecurity"},
		{"hidden alone", provisioning.Args{WifiHidden: new(false)}, "wifiHidden"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := broken(c.args)
			if c.want == "" && len(got) > 0 || c.want != "" && !strings.Contains(strings.Join(got, " "), c.want) {
				t.Errorf("at fault: %v, want %q", got, c.want)
			}
		})
	}
}

func wep(key string) provisioning.Args {
	return provisioning.Args{WifiSSID: new("x"), WifiSecurity: new("WEP"), WifiPassword: &key}
}

// FuzzWifiRules holds the rules against contract 4.4, spelled out again.
func FuzzWifiRules(f *testing.F) {
	f.Add("guest", "", "", byte(0))
	f.Add("guest", "12345678", "WPA", byte(7))
	f.Add("", "abcde", "WEP", byte(15))
	f.Add(" ä ", "0123456789", "WEP", byte(15))
	f.Fuzz(func(t *testing.T, ssid, password, security string, given byte) {
		ssid, password = strings.ToValidUTF8(ssid, "?"), strings.ToValidUTF8(password, "?")
		var a provisioning.Args
		if given&1 != 0 {
			a.WifiSSID = &ssid
		}
		if given&2 != 0 {
			a.WifiPassword = &password
		}
		if given&4 != 0 {
			a.WifiSecurity = &[]string{"NONE", "WPA", "WEP"}[len(security)%3]
		}
		if given&8 != 0 {
			a.WifiHidden = new(len(password)%2 == 0)
		}
		if got, want := len(broken(a)) == 0, allowed(a); got != want {
			t.Errorf("%q %q %v: accepted %v, want %v", ssid, password, a.WifiSecurity, got, want)
		}
	})
}

func allowed(a provisioning.Args) bool {
	if a.WifiSSID == nil {
		return a.WifiPassword == nil && a.WifiSecurity == nil && a.WifiHidden == nil
	}
	if len(*a.WifiSSID) < 1 || len(*a.WifiSSID) > 32 || strings.ContainsFunc(*a.WifiSSID, unicode.IsControl) {
		return false
	}
	security := "NONE"
	if a.WifiPassword != nil {
		security = "WPA"
	}
	if a.WifiSecurity != nil {
		security = *a.WifiSecurity
	}
	if security == "NONE" || a.WifiPassword == nil {
		return security == "NONE" && a.WifiPassword == nil
	}
	p := *a.WifiPassword
	if len(p) > 63 || strings.ContainsFunc(p, unicode.IsControl) {
		return false
	}
	if security == "WPA" {
		return len(p) >= 8
	}
	if len(p) == 5 || len(p) == 13 {
		return len([]rune(p)) == len(p)
	}
	for _, c := range p {
		if !strings.ContainsRune("0123456789abcdefABCDEF", c) {
			return false
		}
	}
	return len(p) == 10 || len(p) == 26
}

const vendorPayload = `{"android.app.extra.PROVISIONING_DEVICE_ADMIN_COMPONENT_NAME":"com.example/.R","a":{"z":1.50,"a":"<&>\u0041"},` +
	`"android.app.extra.PROVISIONING_WIFI_SSID":"the vendor's own","unknown":[1, 2 ,3]}`

func TestMerge_KeepsUnknownMembers(t *testing.T) {
	t.Parallel()
	got, err := provisioning.Merge([]byte(vendorPayload),
		provisioning.Wifi{SSID: " <a>&'b' ", Password: `p"\ä`, Security: provisioning.WPA, Hidden: true})
	if err != nil {
		t.Fatal(err)
	}
	want :=
		`{"android.app.extra.PROVISIONING_DEVICE_ADMIN_COMPONENT_NAME":"com.example/.R","a":{"z":1.50,"a":"<&>\u0041"},"unknown":[1, 2 ,3],` +
			`"android.app.extra.PROVISIONING_WIFI_SSID":" <a>&'b' ","android.app.extra.PROVISIONING_WIFI_SECURITY_TYPE":"WPA",` +
			`"android.app.extra.PROVISIONING_WIFI_PASSWORD":"p\"\\ä","android.app.extra.PROVISIONING_WIFI_HIDDEN":true}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMerge_WithoutNetwork(t *testing.T) {
	t.Parallel()
	odd := []byte(" {\"b\" : 1, \"a\":2}\n")
	if got, err := provisioning.Merge(odd, provisioning.Wifi{}); err != nil || !bytes.Equal(got, odd) {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestMerge_OpenNetworkHasNoPassword(t *testing.T) {
	t.Parallel()
	got, err := provisioning.Merge([]byte("{}"), provisioning.Wifi{SSID: "x", Password: "left over"})
	if err != nil || strings.Contains(string(got), "PASSWORD") || !strings.Contains(string(got), `SECURITY_TYPE":"NONE"`) {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestMerge_RefusesOtherThanObjects(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{"", "[]", `"x"`, "{", `{"a":}`, `{"a":1`, `{"a" 1}`, "<html>"} {
		if got, err := provisioning.Merge([]byte(payload), provisioning.Wifi{SSID: "x"}); err == nil {
			t.Errorf("Merge(%q) = %s", payload, got)
		}
	}
}

func TestMerge_ReadBackByAnyParser(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := provisioning.Wifi{SSID: rapid.StringN(1, 32, 32).Draw(t, "ssid"), Password: rapid.StringN(8, 63, 63).Draw(t, "password"),
			Security: provisioning.WPA, Hidden: rapid.Bool().Draw(t, "hidden")}
		merged, err := provisioning.Merge([]byte(vendorPayload), w)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(merged, &got); err != nil {
			t.Fatalf("%s: %v", merged, err)
		}
		const key = "android.app.extra.PROVISIONING_WIFI_"
		for extra, want := range map[string]any{"SSID": w.SSID, "PASSWORD": w.Password, "HIDDEN": w.Hidden, "SECURITY_TYPE": "WPA"} {
			if got[key+extra] != want {
				t.Fatalf("%s is %v, want %v", extra, got[key+extra], want)
			}
		}
		if got["unknown"] == nil {
			t.Fatalf("the unknown member is gone: %v", got)
		}
	})
}
