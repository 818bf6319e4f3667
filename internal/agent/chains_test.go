package agent_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"os"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

const chainsFile = "../../android/test/chains.json"

// chainHost is the host of all chains.
const chainHost = "muster.test"

// chain is one that a service shows, with what an agent makes of it.
type chain struct {
	What   string   `json:"what"`
	Pin    string   `json:"pin"`
	Passed int64    `json:"passed"` // Unix milliseconds: this time has surely passed
	Shown  []string `json:"shown"`  // DER
	Taken  bool     `json:"taken"`
}

// day is a moment of the certificates' time, which begins at 0 and ends at 100.
func day(n int) time.Time { return time.UnixMilli(1_700_000_000_000).AddDate(0, 0, n) }

// authority makes certificates; above is who signed its own.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	above       *authority
}

func (a *authority) sign(t *testing.T, edit func(*x509.Certificate)) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: serial.String()}, NotBefore: day(0),
		NotAfter: day(100), BasicConstraintsValid: true}
	edit(template)
	parent, by := template, key
	if a != nil {
		parent, by = a.certificate, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{made, key, a}
}

func ca(c *x509.Certificate) { c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign }

func leaf(c *x509.Certificate) {
	c.DNSNames, c.KeyUsage, c.ExtKeyUsage = []string{chainHost}, x509.KeyUsageDigitalSignature,
		[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
}

func both(edits ...func(*x509.Certificate)) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		for _, edit := range edits {
			edit(c)
		}
	}
}

func valid(from, to int) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.NotBefore, c.NotAfter = day(from), day(to) }
}

// critical adds a critical extension.
func critical(id asn1.ObjectIdentifier, value any) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		der, _ := asn1.Marshal(value)
		c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{Id: id, Critical: true, Value: der})
	}
}

// usage is a critical extended key usage.
func usage(last ...int) func(*x509.Certificate) {
	return critical(asn1.ObjectIdentifier{2, 5, 29, 37}, []asn1.ObjectIdentifier{append(asn1.ObjectIdentifier{2, 5, 29}, last...)})
}

func purpose(n int) func(*x509.Certificate) {
	return critical(asn1.ObjectIdentifier{2, 5, 29, 37}, []asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, n}})
}

// makeChains makes every chain again: keys are random.
func makeChains(t *testing.T) (all []chain) {
	t.Helper()
	add := func(what string, taken bool, passed int, own *authority) {
		c := chain{What: what, Taken: taken, Passed: day(passed).UnixMilli()}
		for at := own; at != nil; at = at.above {
			c.Shown, c.Pin = append(c.Shown, base64.RawURLEncoding.EncodeToString(at.certificate.Raw)), protocol.Pin(at.certificate)
		}
		all = append(all, c)
	}
	var none *authority
	root := none.sign(t, ca)
	middle := root.sign(t, ca)
	add("the pinned key itself, which has expired, for another host", true, 200, none.sign(t, func(*x509.Certificate) {}))
	add("its authority", true, 50, root.sign(t, leaf))
	add("an authority below", true, 50, middle.sign(t, leaf))
	add("without a purpose", true, 50, root.sign(t, both(leaf, func(c *x509.Certificate) { c.ExtKeyUsage = nil })))
	add("for another host", false, 50, root.sign(t, both(leaf, func(c *x509.Certificate) { c.DNSNames = []string{"other.test"} })))
	add("for clients", false, 50,
		root.sign(t, both(leaf, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })))
	add("long before its time, as far as is known", true, -1000, root.sign(t, both(leaf, valid(40, 60))))
	add("renewed since the service was last heard", true, 10, middle.sign(t, both(leaf, valid(40, 60))))
	add("expired when the service was last heard", false, 61, middle.sign(t, both(leaf, valid(40, 60))))
	add("the authority expired when the service was last heard", false, 61, none.sign(t, both(ca, valid(0, 60))).sign(t, leaf))
	add("an authority below expired", false, 61, root.sign(t, both(ca, valid(0, 60))).sign(t, leaf))
	add("there is no moment at which all are valid", false, 0, none.sign(t, both(ca, valid(0, 30))).sign(t, both(leaf, valid(40, 60))))
	add("an authority for servers, which says so critically", true, 50, root.sign(t, both(ca, purpose(1))).sign(t, leaf))
	add("an authority for everything, which says so critically", true, 50, root.sign(t, both(ca, usage(37, 0))).sign(t, leaf))
	add("an authority for clients, which says so critically", false, 50, root.sign(t, both(ca, purpose(2))).sign(t, leaf))
	add("below what is no authority", false, 50, root.sign(t, leaf).sign(t, leaf))
	add("below more authorities than are allowed", false, 50,
		root.sign(t, both(ca, func(c *x509.Certificate) { c.MaxPathLenZero = true })).sign(t, ca).sign(t, leaf))
	add("below an authority for other hosts", false, 50,
		root.sign(t, both(ca, func(c *x509.Certificate) {
			c.PermittedDNSDomainsCritical, c.PermittedDNSDomains = true, []string{"other.test"}
		})).sign(t, leaf))
	add("with an unknown critical extension", false, 50, root.sign(t, both(leaf, critical(asn1.ObjectIdentifier{1, 2, 3, 4}, 1))))
	return all
}

// TestChains_Golden: this agent takes the chains that the Android app's tests have both
// of its providers judge.
func TestChains_Golden(t *testing.T) {
	t.Parallel()
	if *update {
		text, err := json.MarshalIndent(object{"host": chainHost, "chains": makeChains(t)}, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(chainsFile, append(text, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(chainsFile)
	if err != nil {
		t.Fatal(err)
	}
	var kept struct{ Chains []chain }
	if err := json.Unmarshal(text, &kept); err != nil || len(kept.Chains) < 19 {
		t.Fatalf("%d chains, %v", len(kept.Chains), err)
	}
	for _, c := range kept.Chains {
		var shown []*x509.Certificate
		for _, text := range c.Shown {
			der, err := base64.RawURLEncoding.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			one, err := x509.ParseCertificate(der)
			if err != nil {
				t.Fatal(err)
			}
			shown = append(shown, one)
		}
		if err := agent.JudgeChain(c.Pin, chainHost, shown, time.UnixMilli(c.Passed)); (err == nil) != c.Taken {
			t.Errorf("%s: %v, want taken: %v", c.What, err, c.Taken)
		}
	}
}
