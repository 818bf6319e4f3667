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

	"github.com/musterhq/muster/internal/company"
)

type oneCompany struct{ company.Store }

func (oneCompany) CompanyByID(context.Context, string) (company.Company, error) {
	return company.Company{}, nil
}

func TestServe_PanicIsAnswered(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := New(Config{Companies: oneCompany{}, Hub: NewHub(), Now: time.Now, Log: slog.New(slog.NewTextHandler(&log, nil))})
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
