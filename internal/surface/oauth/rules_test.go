package oauth_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/outbound"
	"github.com/musterhq/muster/internal/surface/oauth"
)

func TestRedirects_Registered(t *testing.T) {
	t.Parallel()
	for uri, good := range map[string]bool{
		"https://app.example.com/cb":                   true,
		"https://app.example.com/cb?x=1":               true,
		"http://127.0.0.1/cb":                          true,
		"http://127.0.0.1:4711/cb":                     true,
		"http://[::1]:4711/cb":                         true,
		"http://localhost:4711/cb":                     true,
		"http://app.example.com/cb":                    false,
		"https://app.example.com/cb#frag":              false,
		"https://app.example.com/cb#":                  false,
		"https://user@app.example.com/cb":              false,
		"javascript:alert(1)":                          false,
		"cursor://anysphere.cursor-mcp/oauth/callback": true,
		"com.example.app:/oauth2redirect":              true,
		"search-ms://query/cb":                         false,
		"microsoft-edge://x/cb":                        false,
		"ldap://x/cb":                                  false,
		"smb://x/cb":                                   false,
		"ssh://x/cb":                                   false,
		"itms-services://x/cb":                         false,
		"jar://x/cb":                                   false,
		"ms-settings://x/cb":                           false,
		"myapp://x/cb":                                 true,
		"com.example.app://x/cb":                       true,
		"ms-x.y://x/cb":                                false,
		"vscode://x.y/cb":                              true,
		"CURSOR://x/cb":                                true,
		"cursor:callback":                              false, // not hierarchical, as urn: addresses are
		"urn:ietf:wg:oauth:2.0:oob":                    false,
		"cursor://user@x/cb":                           false,
		"cursor://x/cb#frag":                           false,
		"/cb":                                          false,
		"":                                             false,
		"https://app.example.com/c b":                  false,
		"https://app.example.com\\@evil/":              false,
		"https://äpp.example.com/cb":                   false,
		"http://127.0.0.1.evil.example/cb":             false,
		"http://localhost.evil.example/cb":             false,
		"data:text/html,<script></script>":             false,
		"https:app.example.com":                        false,
		"http://127.0.0.1@evil.example.com/x":          false,
		"https://app.example.com;sandbox/cb":           false,
		"https://app.example.com,x/cb":                 false,
		"https://app.example.com'/cb":                  false,
		"https://[2606:4700::1111]:8443/cb":            true,
		"https://app.example.com:8443/cb":              true,
	} {
		t.Run(uri, func(t *testing.T) {
			if why := oauth.RedirectFault(uri); (why == "") != good {
				t.Errorf("%q: %q, want good %v", uri, why, good)
			}
		})
	}
}

func TestRedirects_MatchExactlyExceptLoopbackPorts(t *testing.T) {
	t.Parallel()
	registered := []string{"https://app.example.com/cb", "http://127.0.0.1/cb"}
	for uri, good := range map[string]bool{
		"https://app.example.com/cb":      true,
		"https://app.example.com/cb/":     false,
		"https://app.example.com/CB":      false,
		"https://app.example.com:443/cb":  false,
		"https://app.example.com/cb?x=1":  false,
		"https://app.example.com.evil/cb": false,
		"http://127.0.0.1/cb":             true,
		"http://127.0.0.1:51000/cb":       true,
		"http://127.0.0.1:51000/other":    false,
		"http://127.0.0.1:51000/cb?x=1":   false,
		"http://127.0.0.1:51000/cb#x":     false,
		"http://localhost:51000/cb":       false,
		"https://127.0.0.1:51000/cb":      false,
		"http://evil@127.0.0.1:51000/cb":  false,
		"HTTP://127.0.0.1:51000/cb":       false,
	} {
		t.Run(uri, func(t *testing.T) {
			if got := oauth.RedirectAllowed(registered, uri); got != good {
				t.Errorf("%q: %v, want %v", uri, got, good)
			}
		})
	}
	apps := []string{"cursor://anysphere.cursor-mcp/oauth/callback"}
	for uri, good := range map[string]bool{apps[0]: true, apps[0] + "/": false, apps[0] + "?x=1": false,
		"Cursor://anysphere.cursor-mcp/oauth/callback":   false,
		"cursor://anysphere.cursor-mcp:1/oauth/callback": false} {
		t.Run(uri, func(t *testing.T) {
			if got := oauth.RedirectAllowed(apps, uri); got != good {
				t.Errorf("%q: %v, want %v", uri, got, good)
			}
		})
	}
	for uri, want := range map[string]bool{"http://127.0.0.1:1/cb": true, "http://[::1]/cb": true, "http://localhost/cb": true,
		"https://app.example.com/cb": false, "https://localhost.evil.example/cb": false, apps[0]: false} {
		t.Run(uri, func(t *testing.T) {
			if got := oauth.ToLoopback(uri); got != want {
				t.Errorf("%q goes to this computer: %v, want %v", uri, got, want)
			}
		})
	}
}

func TestRedirect_SchemesWithAMeaningOfTheirOwnAreRefused(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"javascript", "data", "file", "filesystem", "blob", "about", "vbscript",
		"view-source", "ws", "wss", "ftp",
		"mailto", "tel", "sms", "intent", "content", "chrome", "ms-settings", "ms-msdt", "MS-Word", "android-app", "JavaScript"} {
		for _, rest := range []string{"://x/cb", ":/cb", ":cb", "://x"} {
			if oauth.RedirectFault(scheme+rest) == "" {
				t.Errorf("%s is accepted", scheme+rest)
			}
		}
	}
}

func TestDocuments_OnlyPublicAddresses(t *testing.T) {
	t.Parallel()
	for text, public := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true,
		"127.0.0.1": false, "::1": false, "10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false,
		"169.254.169.254": false, "fe80::1": false, "fd00::1": false, "0.0.0.0": false, "::": false,
		"100.64.0.1": false, "192.0.2.1": false, "198.18.0.1": false, "224.0.0.1": false, "255.255.255.255": false,
		"64:ff9b::a9fe:a9fe": false, "2002:7f00:1::": false, "2001:db8::1": false,
	} {
		t.Run(text, func(t *testing.T) {
			if got := outbound.Public(netip.MustParseAddr(text)); got != public {
				t.Errorf("%s: %v, want %v", text, got, public)
			}
		})
	}
}

func TestDocuments_Metadata(t *testing.T) {
	t.Parallel()
	const id = "https://app.example.com/client.json"
	for body, good := range map[string]bool{
		`{"client_id":"` + id +
			`","client_name":"App","redirect_uris":["https://app.example.com/cb"]}`: true,
		`{"client_id":"` + id +
			`","client_name":"A","redirect_uris":["http://127.0.0.1/cb"],"token_endpoint_auth_method":"none"}`: true,
		`{"client_id":"` + id +
			`","redirect_uris":["https://app.example.com/cb"]}`: false,
		`{"client_id":"` + id +
			`","client_name":" ","redirect_uris":["https://app.example.com/cb"]}`: false,
		`{"client_id":"` + id +
			`","client_name":"\u200b\u3164","redirect_uris":["https://app.example.com/cb"]}`: false,
		`{"client_id":"` + id +
			`","client_name":"A","client_name":"B","redirect_uris":["https://app.example.com/cb"]}`: false,
		`{"client_id":"https://evil.example/c","CLIENT_ID":"` + id +
			`","client_name":"A","redirect_uris":["https://app.example.com/cb"]}`: false,
		`{"client_id":"https://evil.example/client.json","client_name":"A","redirect_uris":["https://app.example.com/cb"]}`: false,
		`{"client_name":"A","redirect_uris":["https://app.example.com/cb"]}`:                                                false,
		`{"client_id":"` + id +
			`","client_name":"A"}`: false,
		`{"client_id":"` + id +
			`","client_name":"A","redirect_uris":["http://app.example.com/cb"]}`: false,
		`{"client_id":"` + id +
			`","client_name":"A","redirect_uris":["https://app.example.com/cb"],"token_endpoint_auth_method":"client_secret_basic"}`: false,
		`{"client_id":"` + id + `","client_name":"` + strings.Repeat("x", 101) +
			`","redirect_uris":["https://app.example.com/cb"]}`: false,
		`<html>`: false,
		``:       false,
	} {
		t.Run(body, func(t *testing.T) {
			if _, err := oauth.ParseDocument(id, []byte(body)); (err == nil) != good {
				t.Errorf("%s: %v, want good %v", body, err, good)
			}
		})
	}
	for address, good := range map[string]bool{
		id: true, "https://app.example.com": false, "https://app.example.com/": false, "http://app.example.com/c.json": false,
		"https://app.example.com/../c": false, "https://app.example.com/c#x": false, "https://u@app.example.com/c": false, "mc_123": false,
	} {
		t.Run(address, func(t *testing.T) {
			if got := oauth.IsDocumentID(address); got != good {
				t.Errorf("%q is a document's address: %v, want %v", address, got, good)
			}
		})
	}
}

func TestDocuments_CacheIsBounded(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"": 10 * time.Minute, "no-store": time.Minute, "max-age=5": time.Minute, "public, max-age=600": 10 * time.Minute,
		"max-age=999999999": time.Hour, "max-age=x": 10 * time.Minute,
	} {
		t.Run(header, func(t *testing.T) {
			if got := oauth.CacheFor(header); got != want {
				t.Errorf("%q: %v, want %v", header, got, want)
			}
		})
	}
}

func FuzzRedirect(f *testing.F) {
	f.Add("http://127.0.0.1:1/cb")
	f.Add("https://app.example.com/cb")
	f.Fuzz(func(t *testing.T, uri string) {
		if oauth.RedirectAllowed([]string{"https://app.example.com/cb"}, uri) && uri != "https://app.example.com/cb" {
			t.Fatalf("%q passes for another address", uri)
		}
		if oauth.RedirectAllowed([]string{"http://127.0.0.1/cb"}, uri) && !strings.HasPrefix(uri, "http://127.0.0.1") {
			t.Fatalf("%q passes for a loopback address", uri)
		}
	})
}

func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"client_id":"https://a.example/c","client_name":"A","redirect_uris":["https://a.example/cb"]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		client, err := oauth.ParseDocument("https://a.example/c", body)
		if err != nil {
			return
		}
		for _, uri := range client.RedirectURIs {
			if oauth.RedirectFault(uri) != "" {
				t.Fatalf("the document brought %q in", uri)
			}
		}
	})
}
