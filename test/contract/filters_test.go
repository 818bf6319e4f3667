package contract_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/test/poll"
)

// inventory is a company with assets of all sorts, and its surfaces.
type inventory struct {
	*servertest.Tenant
	client    servertest.Client
	assistant servertest.Assistant
	person    *servertest.Browser
	base      string
}

func newInventory(t *testing.T, env *servertest.Env) *inventory {
	replica := env.Start()
	s := env.NewTenant(servertest.UniqueSlug())
	devices := s.Devices(replica, servertest.FullyManaged(), 3)
	lines := []asset.Line{}
	for n, tags := range [][]string{{"store-12"}, {"store-12", "loaner"}, {"Store-12"}, {}, {"loaner"}} {
		lines = append(lines, asset.Line{Number: n + 2, Identification: fmt.Sprintf("Spare %d", n), Tags: tags,
			Specifications: map[string]string{"serialNumber": fmt.Sprintf("SP-%d", n), "model": "Pixel 8"},
			CustomData:     map[string]string{"user": "Ada Lovelace " + fmt.Sprint(n)}})
	}
	if done, err := env.DB().Import(t.Context(), s.Company.ID, lines, asset.ImportOptions{}); err != nil || len(done.Errors) > 0 {
		t.Fatal(done, err)
	}
	key := s.Key(s.Company, access.All)
	v := &inventory{Tenant: s, client: replica.As(key), assistant: servertest.WithKey(t, replica.PublicURL(), key),
		person: s.Browser(s.Company, account.Admin), base: replica.PublicURL()}
	v.person.SignIn(v.base)
	v.client.Do("PATCH", "/assets/"+devices[0].AssetID, map[string]any{"tags": []string{"store-12"}, "identification": "Élan scanner"}).
		Want(t, 200)
	v.client.Post("/assets/"+devices[1].AssetID+"/commands/lost-mode", map[string]any{"message": "Lost"}).Want(t, 200)
	poll.Until(t, "no device is lost", func() error { // until the platform has said so
		if len(v.list(t, url.Values{"lost": {"true"}})) == 0 {
			return errors.New("none")
		}
		return nil
	})
	return v
}

// listedAsset is what a test reads of an asset.
type listedAsset struct {
	PathName       string            `json:"pathName"`
	Identification string            `json:"identification"`
	Status         string            `json:"status"`
	Specifications map[string]string `json:"specifications"`
	CustomData     struct {
		Tags []string `json:"tags"`
		User string   `json:"user"`
	} `json:"customData"`
}

// words reports whether each word of a query begins a word of what a search looks at.
func (a listedAsset) words(query string) bool {
	all := strings.FieldsFunc(
		strings.ToLower(strings.Join(append([]string{a.Identification, a.Specifications["serialNumber"], a.Specifications["imei"],
			a.Specifications["model"], a.CustomData.User}, a.CustomData.Tags...), " ")), func(r rune) bool { return r == ' ' || r == '-' })
	for word := range strings.FieldsSeq(strings.ReplaceAll(strings.ToLower(query), "-", " ")) {
		if !slices.ContainsFunc(all, func(other string) bool { return strings.HasPrefix(other, word) }) {
			return false
		}
	}
	return true
}

func names(all []listedAsset) string {
	var names []string
	for _, a := range all {
		names = append(names, a.PathName)
	}
	return strings.Join(names, " ")
}

// A filter finds the same assets in the same order over REST, MCP, the command line and the
// portal's export: those that a test finds that reads every asset itself.
func TestFilters_SameOnEverySurface(t *testing.T) {
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		v := newInventory(t, env)
		all := v.list(t, url.Values{})
		if len(all) != 8 {
			t.Fatalf("%d assets, want 8", len(all))
		}
		for name, c := range map[string]struct {
			query url.Values
			meets func(listedAsset) bool
		}{
			"a tag": {url.Values{"tag": {"store-12"}},
				func(a listedAsset) bool { return slices.Contains(a.CustomData.Tags, "store-12") }},
			"two tags":    {url.Values{"tag": {"store-12", "loaner"}}, func(a listedAsset) bool { return a.Identification == "Spare 1" }},
			"words":       {url.Values{"search": {"lovel spare"}}, func(a listedAsset) bool { return a.words("lovel spare") }},
			"a serial":    {url.Values{"search": {"sp-3"}}, func(a listedAsset) bool { return a.words("sp-3") }},
			"an accent":   {url.Values{"search": {"ÉLAN"}}, func(a listedAsset) bool { return a.words("élan") }},
			"never there": {url.Values{"status": {"PENDING"}}, func(a listedAsset) bool { return a.Status == "PENDING" }},
			"tag and words": {url.Values{"tag": {"loaner"}, "search": {"4"}}, func(a listedAsset) bool {
				return slices.Contains(a.CustomData.Tags, "loaner") && a.words("4")
			}},
			"nothing": {url.Values{"search": {"absent"}}, func(a listedAsset) bool { return a.words("absent") }},
		} {
			want := slices.DeleteFunc(slices.Clone(all), func(a listedAsset) bool { return !c.meets(a) })
			v.compare(t, name, c.query, want)
		}
		lost := v.list(t, url.Values{"lost": {"true"}})
		v.compare(t, "lost", url.Values{"lost": {"true"}}, lost)
		if len(lost) != 1 {
			t.Errorf("%d devices are lost, want 1", len(lost))
		}
	})
}

// list reads all that matches over REST, three assets a page.
func (v *inventory) list(t *testing.T, query url.Values) (all []listedAsset) {
	t.Helper()
	for page := 0; ; page++ {
		q := url.Values{"sort": {"identification,asc"}, "size": {"3"}, "page": {fmt.Sprint(page)}}
		for name, values := range query {
			q[name] = values
		}
		var got struct {
			Content []listedAsset `json:"content"`
		}
		if err := json.Unmarshal(v.client.Get("/assets?"+q.Encode()).Want(t, 200).Body, &got); err != nil {
			t.Fatal(err)
		}
		if all = append(all, got.Content...); len(got.Content) < 3 {
			return all
		}
	}
}

func (v *inventory) compare(t *testing.T, name string, query url.Values, want []listedAsset) {
	t.Helper()
	check := func(surface, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s by %s:\n%s\nwant\n%s", name, surface, got, want)
		}
	}
	check("REST", names(v.list(t, query)), names(want))
	check("REST's count", string(v.client.Get("/assets/count?"+query.Encode()).Want(t, 200).Body), fmt.Sprintf(`{"count":%d}`, len(want)))

	args := map[string]any{"sort": "identification,asc", "size": 100}
	for name, values := range query {
		switch args[name] = values[0]; name {
		case "tag":
			args[name] = values
		case "lost":
			args[name] = true
		}
	}
	var tools struct {
		Content []listedAsset `json:"content"`
	}
	v.assistant.Call("list_assets", args).OK(t, &tools)
	check("MCP", names(tools.Content), names(want))

	filter := query.Encode()
	var out bytes.Buffer
	command := cli.AssetList{OfCompany: cli.OfCompany{Company: v.Company.Slug}, Filter: &filter}
	command.Database, command.Output = v.Database, "json"
	if err := command.Run(&cli.Env{Context: t.Context(), Out: &out, Now: v.Now, Open: service.OpenAdmin(v.Now, v.Config().KeyFile)}); err !=
		nil {
		t.Fatal(err)
	}
	var listed []listedAsset
	if err := json.Unmarshal(out.Bytes(), &listed); err != nil {
		t.Fatal(err)
	}
	check("the command line", names(listed), names(want))

	portal := url.Values{"sort": {"identification,asc"}}
	for name, values := range query {
		portal[strings.Replace(name, "search", "q", 1)] = values
	}
	rows, err := csv.NewReader(bytes.NewReader(v.person.Send(v.base+"/devices/export.csv?"+portal.Encode(), nil).Want(t, 200).Body)).
		ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var exported []string
	for _, row := range rows[1:] {
		exported = append(exported, "enterprises/"+v.Company.Slug+"/assets/"+row[0])
	}
	check("the portal's export", strings.Join(exported, " "), names(want))
}
