package browser

import (
	"context"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
)

// Authenticator plugs a virtual authenticator in, whose person agrees to
// everything.
func (t *Tab) Authenticator() {
	t.TB.Helper()
	t.do("plug an authenticator in", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		if _, err := chromedp.Call(ctx, webauthn.Enable, webauthn.EnableParams{}); err != nil {
			return err
		}
		added, err := chromedp.Call(ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
			Options: &webauthn.VirtualAuthenticatorOptions{Protocol: webauthn.AuthenticatorProtocolCtap2,
				Ctap2version: webauthn.Ctap2versionCtap21,
				Transport:    webauthn.AuthenticatorTransportInternal, HasResidentKey: true, HasUserVerification: true,
				IsUserVerified: true, AutomaticPresenceSimulation: true}})
		t.authenticator = added.AuthenticatorID
		return err
	}))
}

// Agrees sets whether the authenticator's person agrees to what it is asked.
func (t *Tab) Agrees(yes bool) {
	t.TB.Helper()
	t.do("let the person agree", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := chromedp.Call(ctx, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: t.authenticator,
			IsUserVerified: yes})
		return err
	}))
}
