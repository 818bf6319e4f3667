package service

import (
	"net/http"

	"github.com/musterhq/muster/internal/access"
)

// withOrigin notes where each request came from, for the activity log.
func (c clientAddress) withOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o := access.Origin{Address: c.of(r), Client: r.UserAgent()}
		next.ServeHTTP(w, r.WithContext(access.WithOrigin(r.Context(), o)))
	})
}
