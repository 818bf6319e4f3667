package frame

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/company"
)

type oneCompany struct{ company.Store }

func (oneCompany) CompanyByID(context.Context, string) (company.Company, error) {
	return company.Company{}, nil
}

// stands is an answer of the database to who may still do what.
func stands(context.Context) error { return nil }

func TestServe_PanicIsAnswered(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := &Frame{Companies: oneCompany{}, Stands: stands, Hub: NewHub(), Now: time.Now, Log: slog.New(slog.NewTextHandler(&log, nil))}
	r := httptest.NewRequest(http.MethodGet, "/devices", nil)
	r.Header.Set("Hx-Request", "true") // our own script: a notice is the answer
	w := httptest.NewRecorder()
	f.visitOnce(w, r, Route{Serve: func(*Visit) error { panic("secret cause") }})
	id := w.Header().Get("X-Request-Id")
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), id) || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, want := range []string{"secret cause", "frame_test.go", "request_id=" + id} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q: %s", want, &log)
		}
	}
}

// A visit that wrote something before its permit moved is not made again, and is not told
// that nothing was done.
func TestServe_MovedInPart(t *testing.T) {
	t.Parallel()
	f := &Frame{Companies: oneCompany{}, Stands: stands, Hub: NewHub(), Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	r, served := httptest.NewRequest(http.MethodPost, "/users", nil), 0
	r.Header.Set("Hx-Request", "true")
	route := Route{Serve: func(v *Visit) error {
		served++
		permit := access.PermitOf(v.Context())
		permit.Wrote(0)
		permit.Refuse()
		return access.ErrMoved
	}}
	again, w := f.visitOnce(httptest.NewRecorder(), r, route), httptest.NewRecorder()
	if again == nil || f.visitOnce(w, again, route) != nil || served != 1 {
		t.Fatalf("served %d times", served)
	}
	if text := w.Body.String(); w.Code != http.StatusUnprocessableEntity || !strings.Contains(text, "a part of it is done") ||
		strings.Contains(text, "nothing was done") {
		t.Errorf("%d %s", w.Code, text)
	}
}
