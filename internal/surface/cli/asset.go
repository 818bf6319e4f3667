package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/name"
)

// AssetCommands manage the inventory.
type AssetCommands struct {
	Import AssetImport `cmd:"" help:"Import assets that are not enrolled from a CSV file: all of them or none."`
}

// AssetImport reads a CSV file into the inventory.
type AssetImport struct {
	OfCompany
	File string `name:"file" required:"" placeholder:"FILE" help:"CSV with a header line: identification, serialNumber, model, manufacturer, brand, tags (separated by ;); any other column is custom data. - reads standard input."`
}

type importView struct {
	Imported int            `json:"imported"`
	Assets   []importedView `json:"assets"`
}

type importedView struct {
	PathName       string `json:"pathName"`
	Identification string `json:"identification"`
}

// Run imports the file.
func (c *AssetImport) Run(env *Env) error {
	in, err := c.input(env)
	if err != nil {
		return err
	}
	defer in.Close()
	assets, err := ReadAssets(in)
	if err != nil {
		return err
	}
	return c.run(env, func(ctx context.Context, desk *Desk) (answer, error) {
		owner, err := desk.company(ctx, c.Company)
		if err != nil {
			return answer{}, err
		}
		view := importView{Imported: len(assets), Assets: make([]importedView, len(assets))}
		for i := range assets {
			assets[i].ID, assets[i].CompanyID, assets[i].CompanySlug = name.NewID(), owner.ID, owner.Slug
			assets[i].CreatedAt = env.Now()
			view.Assets[i] = importedView{assets[i].PathName(), assets[i].Identification}
		}
		return answer{view, func(w io.Writer) {
			fmt.Fprintf(w, "Imported %d assets into %s.\n", len(assets), owner.PathName())
		}}, desk.Assets.ImportAssets(ctx, assets)
	})
}

func (c *AssetImport) input(env *Env) (io.ReadCloser, error) {
	if c.File == "-" {
		return io.NopCloser(env.In), nil
	}
	file, err := os.Open(c.File)
	if err != nil {
		return nil, fault.Invalid(err.Error())
	}
	return file, nil
}
