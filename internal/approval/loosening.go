package approval

import (
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/signature"
)

// Loosening is what a second administrator confirms. askedSince is when the account of the
// administrator who asked was made, or when it last got a right.
func Loosening(l access.Loosening, company string, askedSince time.Time) Subject {
	return Subject{Kind: LooseningKind, ID: l.ID, CompanyID: l.CompanyID, Company: company, Domain: signature.LooseningDomain,
		Expires: l.EffectiveAt,
		Matter:  access.Matter{Administers: true, AskedBy: l.AskedBy.ID, AskedSince: askedSince},
		Document: func(h signature.Head, _ any) any {
			return signature.Loosening{Head: h, Control: string(l.Control), Before: l.Before, After: l.After,
				AskedBy: signature.Person{ID: l.AskedBy.ID, Name: l.AskedBy.Name}, AskedAt: signature.Time(l.AskedAt)}
		}}
}
