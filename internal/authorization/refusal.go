package authorization

import (
	"fmt"

	"github.com/musterhq/muster/internal/fault"
)

// Path is where a person finds an authorization, below the service's address.
const Path = "/authorizations"

// Refusal is the error of a call without an authorization that it could use.
type Refusal struct {
	Verdict Verdict
	ID      string // of the authorization that waits or was declined; empty: there is none
}

// Error implements error.
func (r *Refusal) Error() string {
	return fmt.Sprintf("a person must authorize the call (verdict %d, authorization %s)", r.Verdict, r.ID)
}

// Fault is the refusal for the caller, with the address of the authorization at a service.
func (r *Refusal) Fault(publicURL string) *fault.Error {
	if r.ID == "" && r.Verdict == Asks {
		f := fault.New(fault.Forbidden, "a person must authorize this call: the call itself is answered with the address where they can")
		f.Approval = &fault.Approval{}
		return f
	}
	if r.ID == "" {
		f := fault.New(fault.Forbidden, "a person must authorize this call, and %d calls of this caller wait for a person already: "+
			"no further one is asked for until one of them is decided or an hour old", MaxWaiting)
		f.Approval = &fault.Approval{} // the same call may succeed later: it is not kept
		return f
	}
	address := publicURL + Path + "/" + r.ID
	f := fault.New(fault.Forbidden, "a person must authorize this call at %s; then send the same call again within %d minutes. "+
		"Another reason or more permissions do not replace it", address, int(UseWithin.Minutes()))
	if r.Verdict == Refused {
		f = fault.New(fault.Forbidden, "a person declined this call: see %s. The same call can be asked for again an hour after that", address)
	}
	f.Approval = &fault.Approval{URL: address}
	return f
}
