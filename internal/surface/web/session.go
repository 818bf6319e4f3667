package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
)

// Person is the signed-in person behind a request.
type Person struct {
	Session   account.Session
	User      account.User
	Principal access.Principal
}

// Sessions finds the person behind a request by the session cookie.
type Sessions struct {
	Store    account.SessionStore
	Browsers account.Browsers
	Now      func() time.Time
	Secure   bool // the public URL is https
}

// sessionSeen is how far a session's last use may lag behind.
const sessionSeen = time.Minute

// The ends of the names of cookies beside the session's own.
const (
	// providerCookie holds a sign-in at an identity provider in the browser that began it.
	// Its name stays, so that an upgrade does not interrupt a sign-in.
	providerCookie = "-journey"
	browserCookie  = "-browser" // names the people who signed in with the browser before
)

// Cookie returns the name of a cookie by its end. It is bound to this host where the browser can do that: another
// host of the domain cannot set it.
func (s Sessions) Cookie(end string) string {
	if s.Secure {
		return "__Host-muster" + end
	}
	return "muster" + end
}

// Person returns who is signed in, or false.
func (s Sessions) Person(r *http.Request) (Person, bool, error) {
	cookie, err := r.Cookie(s.Cookie(""))
	if err != nil {
		return Person{}, false, nil
	}
	session, user, principal, err := s.Store.SessionByToken(r.Context(), access.HashSecret(cookie.Value))
	if fault.CodeOf(err) == fault.NotFound {
		return Person{}, false, nil
	}
	now := s.Now()
	if err != nil || !session.Live(now) {
		return Person{}, false, err
	}
	if now.Sub(session.SeenAt) > sessionSeen {
		_ = s.Store.TouchSession(r.Context(), session.ID, now) // a last use may be lost, as on a full disk: reading goes on
	}
	return Person{Session: session, User: user, Principal: principal}, true, nil
}

// Again lets the person of a request in once more, for access.NewPermit.
func (s Sessions) Again(r *http.Request) func(context.Context) (access.Principal, error) {
	return func(ctx context.Context) (access.Principal, error) {
		now, signedIn, err := s.Person(r.WithContext(ctx))
		if err == nil && !signedIn {
			err = fault.New(fault.Unauthorized, "you are signed out: sign in to continue")
		}
		return now.Principal, err
	}
}

// Clear takes the session from the browser.
func (s Sessions) Clear(w http.ResponseWriter) {
	s.SetCookie(w, "", "", -time.Second)
}

// SetProviderSignIn gives the browser its sealed sign-in at a provider.
func (s Sessions) SetProviderSignIn(w http.ResponseWriter, sealed string) {
	s.SetCookie(w, providerCookie, sealed, account.PendingLife)
}

// TakeProviderSignIn returns the browser's sealed sign-in at a provider and removes it from
// the browser; empty: there is none.
func (s Sessions) TakeProviderSignIn(w http.ResponseWriter, r *http.Request) string {
	cookie, err := r.Cookie(s.Cookie(providerCookie))
	s.SetCookie(w, providerCookie, "", -time.Second)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// keepBrowser is how long a browser stays known, the longest that browsers keep
// a cookie.
const keepBrowser = 400 * 24 * time.Hour

// Client returns where a request comes from.
func (s Sessions) Client(r *http.Request, address string) account.Client {
	c := account.Client{Address: address, Agent: r.UserAgent()}
	if cookie, err := r.Cookie(s.Cookie(browserCookie)); err == nil {
		c.Browser = s.Browsers.Open(cookie.Value)
	}
	return c
}

// Enter gives the browser a session, and has it known as one in which the person
// signed in.
func (s Sessions) Enter(w http.ResponseWriter, token string, from account.Client, email string) {
	s.SetCookie(w, "", token, account.SessionLimit)
	s.SetCookie(w, browserCookie, s.Browsers.Seal(from.Browser.With(email)), keepBrowser)
}

// SetCookie sets the cookie whose name has the end, or removes it if the age is negative. SameSite is Lax, because
// clients send people to the consent page from elsewhere.
func (s Sessions) SetCookie(w http.ResponseWriter, end, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{Name: s.Cookie(end), Value: value, Path: "/", HttpOnly: true, Secure: s.Secure,
		SameSite: http.SameSiteLaxMode, MaxAge: int(age / time.Second)})
}

// ProvePath is the page on which a signed-in person proves their identity again.
const ProvePath = "/account/prove"

// ProveAddress is ProvePath, leading back to next, a path of ours.
func ProveAddress(next string) string { return ProvePath + "?next=" + url.QueryEscape(next) }

type visitorKey struct{}

// With returns a context that carries the person.
func With(ctx context.Context, v Person) context.Context {
	return context.WithValue(ctx, visitorKey{}, v)
}

// From returns the person that Admit found.
func From(ctx context.Context) Person { v, _ := ctx.Value(visitorKey{}).(Person); return v }

// Admit lets only signed-in people through. Others are sent to sign in and come back to
// where they wanted to go, or to the page that they sent a form from; scripts get 401.
// guest, if not nil, answers those who are not signed in.
func (s Sessions) Admit(next http.Handler, guest http.HandlerFunc, failed func(http.ResponseWriter, *http.Request, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, ok, err := s.Person(r)
		switch {
		case err != nil:
			failed(w, r, err)
		case ok:
			next.ServeHTTP(w, r.WithContext(With(r.Context(), v)))
		case guest != nil:
			guest(w, r)
		case scripted(r): // a page asks for a part of itself: it says so and stays as it is
			http.Error(w, "Signed out. Sign in to continue.", http.StatusUnauthorized)
		case r.Method == http.MethodGet || r.Method == http.MethodHead:
			http.Redirect(w, r, SignInAddress(r.URL.RequestURI()), http.StatusSeeOther)
		default:
			http.Redirect(w, r, SignInAddress(sender(r)), http.StatusSeeOther)
		}
	})
}

// scripted reports whether a script of a page asks, not a person who opens one.
func scripted(r *http.Request) bool {
	return r.Header.Get("Hx-Request") == "true" || r.Header.Get("Accept") == "text/event-stream"
}

// sender is the page that a form was sent from, if it is one of ours.
func sender(r *http.Request) string {
	from, err := url.Parse(r.Referer())
	if err != nil || from.Host != r.Host {
		return "/"
	}
	return LocalPath(from.RequestURI())
}

// SignInPath is where people sign in.
const SignInPath = "/signin"

// SignedInPath tells the window that waits for a sign-in in another one that it was done.
const SignedInPath = SignInPath + "/done"

// SignInAddress is the sign-in page that leads back to next, a path of ours.
func SignInAddress(next string) string {
	if next == "" || next == "/" {
		return SignInPath
	}
	return SignInPath + "?next=" + url.QueryEscape(next)
}

// LocalPath returns next if it is a path on this service, else "/": sign-in
// cannot be used to send people elsewhere.
func LocalPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}
