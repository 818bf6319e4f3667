package database_test

import (
	"strings"
	"testing"
)

func TestCrossing_Judge(t *testing.T) {
	j, err := newJudge(map[string]string{"found by: api_keys.prefix": "a test"})
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		// confined
		`SELECT id FROM assets WHERE company_id = ? AND status = 'ACTIVE'`:                                                                                                                                    "",
		`SELECT id FROM leases WHERE name = ?`:                                                                                                                                                                "",
		`SELECT a.id FROM assets a WHERE (a.company_id = ?) AND (a.id = ? OR a.status = ?)`:                                                                                                                   "",
		`SELECT c.slug, (SELECT COUNT(*) FROM assets a WHERE a.company_id = c.id) FROM companies c WHERE c.id = ?`:                                                                                            "",
		`SELECT a.id FROM assets a LEFT JOIN policies p ON p.id = a.policy_id WHERE a.company_id = ?`:                                                                                                         "",
		`SELECT h.held FROM webhook_held h JOIN webhooks w ON w.id = h.webhook_id AND w.company_id = ?`:                                                                                                       "",
		`SELECT a.id FROM (SELECT id FROM assets WHERE company_id = ? LIMIT ?) AS page JOIN assets a ON a.id = page.id`:                                                                                       "",
		`WITH of AS (SELECT id FROM assets WHERE company_id = ?) DELETE FROM asset_apps WHERE asset_id IN (SELECT id FROM of)`:                                                                                "",
		`SELECT id FROM commands m WHERE EXISTS (SELECT 1 FROM assets a WHERE a.id = m.asset_id AND a.company_id = ?)`:                                                                                        "",
		`SELECT at FROM asset_contacts WHERE company_id = ? AND (SELECT TRUE FROM assets WHERE assets.id = asset_contacts.asset_id AND EXISTS (SELECT 1 FROM installed_apps i WHERE i.asset_id = assets.id))`: "",
		`SELECT at FROM asset_contacts WHERE company_id = ? AND (SELECT TRUE FROM assets WHERE assets.id = ? AND EXISTS (SELECT 1 FROM installed_apps i WHERE i.asset_id = assets.id))`:                       "assets id",
		`UPDATE assets SET tags = CASE WHEN id = ? AND tags = ? THEN ? END WHERE (id, company_id) = (?, ?)`:                                                                                                   "",
		`INSERT INTO users (id, company_id) VALUES (?, ?)`:                                                                                                                                                    "",
		`INSERT INTO retentions (company_id, next_at) VALUES (?, ?) ON CONFLICT (company_id) DO UPDATE SET next_at = 1`:                                                                                       "",
		`SELECT k.id, c.slug FROM api_keys k JOIN companies c ON c.id = k.company_id WHERE k.prefix = ?`:                                                                                                      "",

		// not confined
		`SELECT id FROM assets`:                                                                                        "assets",
		`SELECT id FROM assets WHERE id = ?`:                                                                           "assets id",
		`SELECT id FROM assets WHERE id IN (?, ?) AND company_id <> ?`:                                                 "assets id",
		`SELECT id FROM assets WHERE company_id IN (?, ?)`:                                                             "assets company_id",
		`SELECT id FROM assets WHERE company_id = ? OR status = ?`:                                                     "assets",
		`SELECT id FROM assets WHERE NOT (company_id = ?)`:                                                             "assets",
		`SELECT id FROM assets WHERE company_id = 'x' || ?`:                                                            "assets",
		`SELECT id FROM assets WHERE company_id = ? UNION SELECT id FROM policies`:                                     "policies",
		`SELECT id FROM assets a LEFT JOIN policies p ON p.id = a.policy_id AND a.company_id = ?`:                      "assets",
		`SELECT id FROM assets a LEFT JOIN policies p ON p.company_id = ?`:                                             "assets",
		`SELECT a.id FROM assets a, policies p WHERE p.company_id = ?`:                                                 "assets",
		`SELECT a.id FROM assets a JOIN policies p ON p.name = a.identification WHERE p.company_id = ?`:                "assets",
		`SELECT a.id FROM assets a WHERE a.company_id = ? AND EXISTS (SELECT 1 FROM users u WHERE u.name = ?)`:         "users",
		`SELECT id FROM commands m WHERE NOT EXISTS (SELECT 1 FROM assets a WHERE a.id = asset_id AND company_id = ?)`: "commands",
		`SELECT (SELECT COUNT(*) FROM assets a WHERE a.company_id = ? AND a.id = m.asset_id) FROM commands m`:          "commands",
		`DELETE FROM sessions WHERE created_at < ?`:                                                                    "sessions",
		`UPDATE commands SET ref = ? WHERE id = (SELECT command_id FROM command_polls)`:                                "command_polls, commands",
		`INSERT INTO asset_apps (asset_id, since) VALUES (?, ?) ON CONFLICT (asset_id) DO UPDATE SET since = 1`:        "asset_apps asset_id",
		`WITH w AS (SELECT id FROM assets) SELECT p.id FROM policies p JOIN w ON w.id = p.id WHERE p.company_id = ?`:   "assets",
		`SELECT slug FROM companies WHERE stopped_at > 0`:                                                              "companies",
	} {
		if got := strings.Join(j.crosses(query), ", "); got != want {
			t.Errorf("%s: crosses %q, want %q", query, got, want)
		}
	}
	if !j.used["found by: api_keys.prefix"] {
		t.Error("the key that found a company was not noted")
	}
}

// What the list lacks fails the test that ran it, and what it has too much fails the run of all tests.
func TestCrossing_List(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		db := e.open(t)
		ran := collect(db) // instead of that of open, which would fail
		if _, err := db.Companies(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := ran.unlisted(map[string]string{"listCompanies: companies": "operator"}); len(got) > 0 {
			t.Error("listed, and refused:", got)
		}
		got := ran.unlisted(nil)
		if crossing := strings.HasPrefix(e.url, "postgres"); len(got) > 0 != crossing || crossing && got["listCompanies: companies"] == "" {
			t.Error("not listed, and not refused:", got)
		}
	})
	c := &crossings{listed: map[string]string{"a: x": "", "b: y": "", "found by: z": ""}, ran: map[string]bool{"a: x": true},
		judge: &judge{used: map[string]bool{"found by: z": true}}}
	if gone := c.gone(); len(gone) != 1 || gone[0] != "b: y" {
		t.Error("gone:", gone)
	}
	for text, reason := range map[string]string{"Why.\n  f: x, y z\n": "Why.", "# c\n\nWhy.\nNot.\n  f: y z\n": "Not."} {
		if got := crossingList(text)["f: y z"]; got != reason {
			t.Errorf("%q: reason %q, want %q", text, got, reason)
		}
	}
}
