package database_test

import "testing"

// The address of the last start is known, of whatever replica.
func TestPublicURL_IsOfTheLastStart(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for _, want := range []string{"", "https://one.example.com", "https://two.example.com"} {
			if want != "" {
				f.ok(f.db.SetPublicURL(f.Context(), want))
			}
			got, err := f.open(f.T).PublicURL(f.Context())
			f.ok(err)
			equal(f, "public URL", got, want)
		}
	})
}
