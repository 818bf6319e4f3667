package web_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/surface/web"
)

// fullDisk reads sessions and cannot note their use.
type fullDisk struct {
	account.SessionStore
	session account.Session
}

// SessionByToken implements account.SessionStore.
func (f fullDisk) SessionByToken(context.Context, access.SecretHash) (account.Session, account.User, access.Principal, error) {
	return f.session, account.User{ID: f.session.UserID}, access.Principal{}, nil
}

// TouchSession implements account.SessionStore.
func (fullDisk) TouchSession(context.Context, string, time.Time) error {
	return errors.New("the disk is full")
}

// A person goes on reading while the disk takes no writes.
func TestPerson_LastUseThatCannotBeNoted(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := web.Sessions{Store: fullDisk{session: account.Session{UserID: "ada", CreatedAt: now, SeenAt: now}},
		Now: func() time.Time { return now.Add(time.Hour) }}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.AddCookie(&http.Cookie{Name: s.Cookie(""), Value: "x"})
	if p, signedIn, err := s.Person(r); err != nil || !signedIn || p.User.ID != "ada" {
		t.Errorf("%+v, %t, %v", p, signedIn, err)
	}
}
