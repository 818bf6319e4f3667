package ops

import (
	"net/http"
	"net/http/pprof"
)

// MountProfiles adds the profiles of Go's runtime below /debug/pprof/, for the listener of the
// metrics alone: profiles contain parts of the memory's content, and each costs CPU time. The
// command line, which net/http/pprof would show as well, is left out, because its flags may hold
// secrets. A CPU profile or a trace takes at most as long as the server may write.
func MountProfiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
}
