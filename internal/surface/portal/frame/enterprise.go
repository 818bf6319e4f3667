package frame

import (
	"context"

	"github.com/musterhq/muster/internal/company"
)

// Troubles knows what is wrong with a company's enterprise at the platform.
type Troubles interface {
	EnterpriseTrouble(ctx context.Context, companyID string) (company.Trouble, error)
}

// TroubleOf returns what is wrong with the enterprise of the person's company. A page is
// shown although that cannot be read.
func TroubleOf(v *Visit, troubles Troubles) company.Trouble {
	trouble, err := troubles.EnterpriseTrouble(v.Context(), v.Company.ID)
	if err != nil {
		v.Note("state of the enterprise", err)
	}
	return trouble
}

// disconnect is the operator's command that gives the enterprise up.
func disconnect(v *Visit) string {
	return "muster company disconnect --company " + v.Company.Slug + " --confirm " + v.Company.Slug
}
