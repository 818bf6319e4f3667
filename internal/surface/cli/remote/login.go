package remote

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/internal/validate"
)

// Logins are the commands that are made from no operation.
type Logins struct {
	Login  Login  `cmd:"" help:"Log in to a service, so that commands over the network work on this computer."`
	Logout Logout `cmd:"" help:"Revoke the API key of this computer, and forget it."`
}

// Where the portal allows a key and exchanges a code for it.
const (
	allowPath = "/access/computer"
	keyPath   = "/login/key"
)

// loginTime is how long login waits for the person.
const loginTime = 10 * time.Minute

// Login keeps a key for a service.
type Login struct {
	Connection
	NoBrowser bool `name:"no-browser" help:"Open no browser, but print the address."`
}

// Help is printed below the flags.
func (Login) Help() string {
	return `A page of the portal opens. There you allow this computer an API key, after a proof of
who you are: with at most your own rights, for 90 days, never for destructive commands.
It takes the right to make API keys. The key is kept in the file muster/login.json in your
folder for settings, which you alone can read.

With --key-file, the key in the file is kept, and no page opens.`
}

// Run logs in.
func (l *Login) Run(env *Env) error {
	kept, _, _ := readLogin(env.ConfigDir) // a damaged one is replaced
	address := kept.URL
	if l.URL != "" {
		var err error
		if address, err = client.ParseAddress(l.URL); err != nil {
			return usage("%v", err)
		}
	}
	if address == "" {
		return usage("give the address of the service: muster login --url https://muster.example.com")
	}
	if _, err := folder(env.ConfigDir); err != nil {
		return err
	}
	warnUnprotected(env, address)
	if l.KeyFile != "" {
		return failure(l.withKey(env, address, kept))
	}
	ctx, cancel := context.WithTimeout(env.Context, loginTime)
	defer cancel()
	key, err := l.ask(ctx, env, address)
	if err != nil {
		return failure(err)
	}
	if err := keep(env, kept, login{URL: address, Key: key.Key, Made: true, Expires: key.ExpiresAt}); err != nil {
		return err
	}
	return l.done(env, address, key)
}

// keep writes a login in the place of the one that was kept. Of the keys that muster login made, it revokes each that is
// not in the file then.
func keep(env *Env, kept, fresh login) error {
	err := writeLogin(env.ConfigDir, fresh)
	written, _, _ := readLogin(env.ConfigDir) // one that cannot be read has no key
	for _, l := range []login{kept, fresh} {
		if !l.Made || l.Key == written.Key {
			continue
		}
		if failed := l.revoke(env.Context); failed != nil {
			fmt.Fprintf(env.Err, "muster: a key of this computer for %s is not revoked: %s; revoke it in the portal\n", plain(l.URL),
				plain(failed.Error()))
		}
	}
	return err
}

// revoke ends the key at its service.
func (l login) revoke(ctx context.Context) error {
	_, err := client.New(l.URL, l.Key).Do(ctx, client.Request{Method: http.MethodDelete, Path: keyPath})
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Status == http.StatusUnauthorized { // it is not valid
		return nil
	}
	return err
}

func (l *Login) done(env *Env, address string, key madeKey) error {
	signedIn := struct {
		URL         string     `json:"url"`
		Permissions []string   `json:"permissions,omitempty"`
		ExpiresAt   *time.Time `json:"expiresAt,omitempty"`
	}{URL: address, Permissions: key.Permissions}
	if !key.ExpiresAt.IsZero() {
		signedIn.ExpiresAt = &key.ExpiresAt
	}
	return cli.Print(env.Out, l.Output, signedIn, func(w io.Writer) {
		fmt.Fprintf(w, "Logged in to %s.\n", address)
		if signedIn.ExpiresAt != nil {
			fmt.Fprintf(w, "The key %s has %s and expires on %s.\n", plain(key.Name), plain(strings.Join(key.Permissions, ", ")),
				key.ExpiresAt.Format(time.DateOnly))
		}
	})
}

// withKey keeps the key of a file, if the service takes it.
func (l *Login) withKey(env *Env, address string, kept login) error {
	key, err := ReadKey(l.KeyFile)
	if err != nil {
		return err
	}
	// Any key may ask this; what it may do does not matter.
	question := []byte(`{"operation":"list_assets","arguments":{}}`)
	if _, err := client.New(address, key).Do(env.Context, client.Request{Method: http.MethodPost, Path: client.Base + "/explain",
		Body: question}); err != nil {
		if p, ok := errors.AsType[*client.Problem](err); !ok || p.Status == http.StatusUnauthorized || p.Status == http.StatusNotFound ||
			p.Status < http.StatusBadRequest {
			return fmt.Errorf("%s does not take the key: %w", address, err)
		}
	}
	if err := keep(env, kept, login{URL: address, Key: key}); err != nil {
		return err
	}
	return l.done(env, address, madeKey{})
}

// madeKey is what the service answers to a code.
type madeKey struct {
	Key         string    `json:"key"`
	Name        string    `json:"name"`
	Permissions []string  `json:"permissions"`
	ExpiresAt   time.Time `json:"expiresAt"`
}

// ask sends the person to the portal, waits for the code and exchanges it.
func (l *Login) ask(ctx context.Context, env *Env, address string) (madeKey, error) {
	verifier, state := access.RandomText(access.SecretLength), access.RandomText(access.SecretLength)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return madeKey{}, fmt.Errorf("cannot wait for the answer of the browser: %w", err)
	}
	codes := make(chan string, 1)
	server := &http.Server{Handler: receiver(state, codes), ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener) //nolint:errcheck // it ends with Close
	defer server.Close()      // nothing is left to answer
	sum := sha256.Sum256([]byte(verifier))
	query := url.Values{"challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "state": {state},
		"name": {validate.Clean(env.Host, maxComputerName)}}
	byHand := address + allowPath + "?" + query.Encode()
	query.Set("redirect", "http://"+listener.Addr().String()+"/")
	l.send(env, address+allowPath+"?"+query.Encode(), byHand)
	go pasted(env.In, state, codes)
	select {
	case <-ctx.Done():
		return madeKey{}, errors.New("no key was allowed in time: start muster login again")
	case code := <-codes:
		body, _ := json.Marshal(map[string]string{"code": code, "verifier": verifier}) // texts always encode
		answer, err := client.New(address, "").Do(ctx, client.Request{Method: http.MethodPost, Path: keyPath, Body: body})
		if p, ok := errors.AsType[*client.Problem](err); ok {
			return madeKey{}, &cli.ExitError{Code: cli.ExitFailed, Text: plain(p.Error())}
		}
		if err != nil {
			return madeKey{}, err
		}
		var key madeKey
		if err := json.Unmarshal(answer.Body, &key); err != nil || key.Key == "" {
			return madeKey{}, fmt.Errorf("%s is no service of Muster that makes keys for computers", address)
		}
		return key, nil
	}
}

// send shows the person the page, or its address.
func (l *Login) send(env *Env, address, byHand string) {
	out := env.Out
	if l.Output == "json" {
		out = env.Err
	}
	if !l.NoBrowser && env.Open != nil && env.Open(address) == nil {
		fmt.Fprintf(out, "Your browser opens a page on which you allow this computer a key. If it does not, open\n\n  %s\n\n", address)
	} else {
		fmt.Fprintf(out, "Open this address in a browser on this computer:\n\n  %s\n\n", address)
	}
	if file, ok := env.In.(*os.File); ok && file != nil && env.Terminal {
		fmt.Fprintf(out, "With a browser on another computer, open\n\n  %s\n\nand paste the code that it shows here: ", byHand)
	}
}

// receiver takes the code that the browser brings, once, if the state is ours: another
// page cannot log this computer in to an account of its own.
func receiver(state string, codes chan<- string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		code, ok := codeOf(r.URL.Query(), state)
		if r.Method != http.MethodGet || r.URL.Path != "/" || !ok {
			http.Error(w, "This is not the answer that muster login waits for.", http.StatusBadRequest)
			return
		}
		select {
		case codes <- code:
		default: // it has one
		}
		fmt.Fprintln(w, "Go back to the terminal. You can close this page.")
	})
}

func codeOf(q url.Values, state string) (string, bool) {
	return q.Get("code"), q.Get("code") != "" && subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) == 1
}

// pasted takes a code that a person brings: itself, or the address that the browser could
// not open.
func pasted(in io.Reader, state string, codes chan<- string) {
	if in == nil {
		return
	}
	for scanner := bufio.NewScanner(in); scanner.Scan(); {
		text := strings.TrimSpace(scanner.Text())
		if u, err := url.Parse(text); err == nil && u.Scheme != "" {
			if text, _ = codeOf(u.Query(), state); text == "" {
				continue
			}
		}
		if text != "" {
			select {
			case codes <- text:
			default:
			}
			return
		}
	}
}

// maxComputerName is how long a computer's name may be for the portal, in characters.
const maxComputerName = 60

// Logout ends the login.
type Logout struct {
	KeepKey bool `name:"keep-key" help:"Forget the key, and leave it valid: for a key of --key-file that others use."`
}

// Help is printed below the flags.
func (Logout) Help() string {
	return `The service refuses the key from then on, wherever else it is used. If the service cannot
be reached, nothing changes.`
}

// Run revokes the key and removes the file.
func (l *Logout) Run(env *Env) error {
	path, err := loginPath(env.ConfigDir)
	if err != nil {
		return err
	}
	kept, found, err := parseLogin(path)
	if errors.Is(err, os.ErrNotExist) {
		fmt.Fprintln(env.Out, "You are not logged in.")
		return nil
	}
	if err != nil && !l.KeepKey {
		return err
	}
	if found && !l.KeepKey {
		if err := kept.revoke(env.Context); err != nil {
			return failure(fmt.Errorf("the key is not revoked, and you are still logged in: %w", err))
		}
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	fmt.Fprintf(env.Out, "Logged out of %s.\n", plain(kept.URL))
	return nil
}
