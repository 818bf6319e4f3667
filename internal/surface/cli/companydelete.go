package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/phrase"
)

// CompanyDelete ends a company for good.
type CompanyDelete struct {
	Named
	Export  string `name:"export" required:"" placeholder:"FILE" help:"Where everything that is deleted is written first, a JSON object on each line. A file that exists is refused."`
	Confirm string `name:"confirm" required:"" placeholder:"SLUG" help:"The company's slug once more."`
}

// Validate wants the slug typed twice.
func (c *CompanyDelete) Validate() error {
	return c.confirmed(c.Confirm)
}

type deletedCompanyView struct {
	Company string `json:"company"`
	Rows    int    `json:"rows"`
	Export  string `json:"export"`
}

// Run deletes. What was begun is finished by running it again, or by the service.
func (c *CompanyDelete) Run(env *Env) error {
	return c.run(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		kept, err := newExport(c.Export)
		if err != nil {
			return answer{}, err
		}
		err = kept.close(admin.CompanyDeleter.DeleteCompany(ctx, owner.ID, kept))
		return answer{deletedCompanyView{owner.PathName(), kept.rows, c.Export}, func(w io.Writer) {
			fmt.Fprintf(w, "Deleted %s; %s went to %s.\n", owner.PathName(), phrase.Count(kept.rows, "row", "rows"), c.Export)
		}}, err
	})
}
