package portal

import (
	"net/http"
	"slices"

	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Section is a part of the portal: some screens and the actions on them.
type Section interface{ Routes() []frame.Route }

// Portal is all of it.
type Portal struct {
	Frame    *frame.Frame
	Sections []Section
}

// Routes is every address of the portal.
func (p *Portal) Routes() []frame.Route {
	var all []frame.Route
	for _, s := range p.Sections {
		all = slices.Concat(all, s.Routes())
	}
	return all
}

// Mount adds the portal to a mux that web.Secure protects.
func (p *Portal) Mount(mux *http.ServeMux) {
	p.Frame.Mount(mux, p.Routes())
}
