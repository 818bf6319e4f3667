package service

import (
	"context"
	"net/http"
)

// watched is the loop that gives the service manager signs of life. Each follows an answer
// to /healthz, by everything but the network: a process that can no longer answer is killed.
// The database has no part in it, because another start does not bring it back.
func (s *Service) watched() Loop {
	return Loop{Name: "watchdog", Run: func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/healthz", nil)
		if err != nil {
			return err
		}
		return s.options.Manager.Watch(ctx, func(context.Context) {
			s.handler.ServeHTTP(unread{http.Header{}}, request)
			_ = s.running.check() // returns unless the loops block each other
		})
	}}
}

// logUnnotified logs that the service manager could not be logUnnotified.
func (s *Service) logUnnotified(err error) {
	if err != nil {
		s.options.Logger.Warn("the service manager was not told", "error", err)
	}
}

// unread takes an answer that is not read.
type unread struct{ header http.Header }

func (u unread) Header() http.Header         { return u.header }
func (u unread) Write(b []byte) (int, error) { return len(b), nil }
func (u unread) WriteHeader(int)             {}
