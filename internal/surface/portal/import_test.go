package portal_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/servertest"
)

// fileForm is the form of an import: fields before the file, the file, and the step.
func fileForm(t testing.TB, file, step string, fields ...string) (contentType, body string) {
	t.Helper()
	var text bytes.Buffer
	form := multipart.NewWriter(&text)
	for i := 0; i+1 < len(fields); i += 2 {
		if err := form.WriteField(fields[i], fields[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	part, err := form.CreateFormFile("file", "devices.csv")
	if err == nil {
		_, err = io.WriteString(part, file)
	}
	if err == nil {
		err = form.WriteField("step", step)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return form.FormDataContentType(), text.String()
}

func (o *office) imports(t *testing.T, p *servertest.Browser, file, step string, fields ...string) servertest.Page {
	t.Helper()
	contentType, body := fileForm(t, file, step, fields...)
	answer := p.Upload(o.base+"/devices/import", contentType, strings.NewReader(body))
	return servertest.Page{Path: answer.Header.Get("Location"), Status: answer.Status, Body: string(answer.Body)}
}

func (o *office) inventory(t *testing.T) int64 {
	t.Helper()
	n, err := o.DB().CountAssets(t.Context(), asset.Filter{CompanyID: o.Company.ID})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A preview writes nothing; what it shows is what the import writes, or the person is told
// that it changed. The same file twice changes nothing.
func TestImport_PreviewThenImport(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	file := "\xef\xbb\xbfDevice name;Serial;Tags;Assigned to;Cost center\r\n=1+1<b>;S1;\"store-12;hall\";Ada;42\r\nTwo;S2;;;\r\n"
	preview := o.imports(t, admin, file, "preview")
	for _, want := range []string{"2 lines: 2 new, 0 changed, 0 left as they are.", "Nothing is written yet", "=1+1&lt;b&gt;",
		"Import 2 assets", "Other data: Cost center"} {
		if preview.Status != 200 || !strings.Contains(preview.Body, want) {
			t.Errorf("the preview, %d, does not say %q: %.2000s", preview.Status, want, preview.Body)
		}
	}
	if n := o.inventory(t); n != 0 {
		t.Fatalf("the preview made %d assets", n)
	}
	if answer := o.imports(t, admin, file, "import"); answer.Status != 200 || o.inventory(t) != 0 {
		t.Errorf("without a plan: %d", answer.Status)
	}
	plan := preview.Field(t, "plan")
	for name, other := range map[string]string{"another file": strings.Replace(file, "Two", "Three", 1),
		"a line more": file + "Three;S3;;;\r\n"} {
		if answer := o.imports(t, admin, other, "import", "plan", plan); answer.Status != 409 ||
			!strings.Contains(answer.Body, "changed since the preview") || o.inventory(t) != 0 {
			t.Errorf("%s: %d", name, answer.Status)
		}
	}
	if done := o.imports(t, admin, file, "import", "plan", plan); done.Status != 303 || o.inventory(t) != 2 {
		t.Fatalf("%d %s", done.Status, done.Body)
	}
	if page := o.get(t, admin, "/devices?q=ada&cols=tags", 200); !strings.Contains(page, "=1+1&lt;b&gt;") ||
		!strings.Contains(page, "hall") {
		t.Error("the asset is not as the file says")
	}
	if again := o.imports(t, admin, file, "preview"); !strings.Contains(again.Body, "would change nothing") ||
		strings.Contains(again.Body, "Import 0") {
		t.Error("the same file changes something")
	}
	entries, err := o.DB().Activity(t.Context(),
		activity.Filter{CompanyID: o.Company.ID, Actions: []activity.Action{activity.AssetsImported}}, activity.Cursor{}, 10)
	if err != nil || len(entries) != 1 || entries[0].Actor.ID != admin.User.ID {
		t.Errorf("log: %+v, %v", entries, err)
	}
}

// The inventory moves between the preview and the import.
func TestImport_InventoryMoved(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	first := "identification,serialNumber,user\nOne,S1,Ada\n"
	o.imports(t, admin, first, "import", "plan", o.imports(t, admin, first, "preview").Field(t, "plan"))
	file := "serialNumber,user\nS1,Bea\n"
	preview := o.imports(t, admin, file, "preview")
	if !strings.Contains(preview.Body, "Ada → Bea") {
		t.Errorf("the preview does not name the change: %.3000s", preview.Body)
	}
	other := "serialNumber,user\nS1,Cem\n"
	o.imports(t, admin, other, "import", "plan", o.imports(t, admin, other, "preview").Field(t, "plan"))
	moved := o.imports(t, admin, file, "import", "plan", preview.Field(t, "plan"))
	if moved.Status != 409 || !strings.Contains(moved.Body, "Cem → Bea") || !strings.Contains(moved.Body, "Import 1 asset") {
		t.Errorf("%d: %.3000s", moved.Status, moved.Body)
	}
	if done := o.imports(t, admin, file, "import", "plan", moved.Field(t, "plan")); done.Status != 303 {
		t.Errorf("the new plan: %d", done.Status)
	}
}

// An export that is imported again changes nothing, and keeps nothing that devices report as custom data.
func TestImport_OwnExport(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	o.device(t, "d1", "S0", "Phone", o.Policy)
	file := "identification,serialNumber,model,manufacturer,tags,user\n" +
		"=1+1,S1,Pixel,Google,\"store 12;=hall;b\\;=c\",@ada\n'quoted',S2,,,,-\n"
	o.imports(t, admin, file, "import", "plan", o.imports(t, admin, file, "preview").Field(t, "plan"))
	export := func(of string) string {
		return string(admin.Send(o.base+"/devices/export.csv"+of, nil).Want(t, 200).Body)
	}
	for _, of := range []string{"", "?cols=status&cols=policy&cols=model&cols=os&cols=battery&cols=seen&cols=tags&cols=user&cols=email" +
		"&cols=serial&cols=ownership&cols=management&cols=created"} {
		preview := o.imports(t, admin, export(of), "preview")
		if preview.Status != 200 || !strings.Contains(preview.Body, "would change nothing") {
			t.Errorf("the export %s changes something: %d %.3000s", of, preview.Status, preview.Body)
		}
	}
	added := strings.Replace(strings.ReplaceAll(export(""), "\n", ",42\n"), ",42\n", ",Cost center\n", 1)
	if preview := o.imports(t, admin, added, "preview"); !strings.Contains(preview.Body, "0 new, 3 changed") ||
		strings.Count(preview.Body, `<option value="" selected`) != 7 {
		t.Errorf("a column that was added: %.3000s", preview.Body)
	}
}

// Columns are what the person chooses.
func TestImport_Mapping(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	file := "Gerät,Nummer,Geheim\nOne,S1,x\n"
	preview := o.imports(t, admin, file, "preview")
	if preview.Status != 400 || !strings.Contains(preview.Body, "identification and serialNumber are missing") ||
		!strings.Contains(preview.Body, `name="target.0"`) {
		t.Errorf("unknown columns: %d %.3000s", preview.Status, preview.Body)
	}
	fields := []string{"column", "Gerät", "column", "Nummer", "column", "Geheim", "target.0", "identification", "target.1",
		"serialNumber", "target.2", ""}
	preview = o.imports(t, admin, file, "preview", fields...)
	if preview.Status != 200 || !strings.Contains(preview.Body, "1 new") {
		t.Fatalf("mapped: %d %.3000s", preview.Status, preview.Body)
	}
	o.imports(t, admin, file, "import", append(fields, "plan", preview.Field(t, "plan"))...)
	if page := o.get(t, admin, "/devices?q=S1", 200); !strings.Contains(page, "One") {
		t.Error("it was not imported")
	}
	if page := o.get(t, admin, "/devices?q=x", 200); strings.Contains(page, ">One<") {
		t.Error("what is left out was imported")
	}
}

// Hostile files are refused by line, and write nothing.
func TestImport_Hostile(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	for name, tc := range map[string]struct {
		file, says string
		status     int
	}{
		"no file":         {"", "The file is empty", 400},
		"header alone":    {"identification\n", "has no line below its header", 400},
		"twice":           {"identification,serialNumber\nA,S1\nB,s1\n", "stands on line 2 already", 422},
		"columns twice":   {"identification,a,a\n1,2,3\n", "stands twice", 400},
		"unclosed quote":  {"identification\nok\n\"a\nb\n", "a quote is not closed", 422},
		"quoted newline":  {"identification\nok\n\"a\nb\"\n", "holds a control character", 422},
		"Latin-1":         {"identification\nM\xfcller\n", "is not UTF-8", 422},
		"UTF-16":          {"\xff\xfei\x00", "the file is UTF-16", 400},
		"a line of 10 MB": {"identification\nok\n" + strings.Repeat("x", 10<<20) + "\n", "longer than 1 MB", 422},
		"1000 columns":    {"identification" + strings.Repeat(",c", 1000) + "\n", "1001 columns", 400},
		"HTML":            {"identification,\"<script>alert(1)</script>\"\nok,x,y\n", "not as many cells", 422},
	} {
		answer := o.imports(t, admin, tc.file, "preview")
		if answer.Status != tc.status || !strings.Contains(answer.Body, tc.says) || strings.Contains(answer.Body, "<script>alert") {
			t.Errorf("%s: %d, want %d and %q: %.3000s", name, answer.Status, tc.status, tc.says, answer.Body)
		}
		if n := o.inventory(t); n != 0 {
			t.Fatalf("%s: %d assets were made", name, n)
		}
	}
}

// The person is looked at before the file: who may not import, or comes from another site,
// is refused without it.
func TestImport_AdmittedBeforeTheFile(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	address := o.base + "/devices/import"
	admin := o.person(t, account.Admin)
	contentType, body := fileForm(t, "identification\nOne\n", "preview")
	unread := strings.NewReader(body)
	for name, tc := range map[string]struct {
		who     *servertest.Browser
		headers []string
		status  int
	}{
		"no session":      {o.Browser(o.Company, account.Admin), nil, 303},
		"no right":        {o.person(t, account.Viewer), nil, 403},
		"some policies":   {o.person(t, account.Admin, o.Policy.ID), nil, 403},
		"another site":    {admin, []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, 403},
		"too large":       {admin, nil, 413},
		"may (the other)": {admin, nil, 200},
	} {
		_, _ = unread.Seek(0, io.SeekStart)
		var from io.Reader = unread
		if tc.status == 413 {
			from = io.MultiReader(strings.NewReader(strings.Split(body, "One")[0]),
				&repeated{text: "x,y\n", left: asset.MaxImportBytes + 2<<20})
		}
		answer := tc.who.Upload(address, contentType, from, tc.headers...)
		if answer.Status != tc.status {
			t.Errorf("%s: %d, want %d: %.600s", name, answer.Status, tc.status, answer.Body)
		}
	}
	if page := o.get(t, o.person(t, account.Viewer), "/devices", 200); strings.Contains(page, `href="/devices/import"`) {
		t.Error("who may not import is offered it")
	}
}

// repeated is a text many times.
type repeated struct {
	text string
	left int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(p) && r.left > 0 {
		k := copy(p[n:], r.text)
		n, r.left = n+k, r.left-k
	}
	return n, nil
}

// A file that arrives after the person has lost the right imports nothing.
func TestImport_HeldFile(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	file := "identification\nOne\n"
	for name, take := range map[string]func(*servertest.Browser){
		"right":    func(p *servertest.Browser) { p.Change(func(u *account.User) { u.Role, u.Rights = account.Viewer, 0 }) },
		"account":  func(p *servertest.Browser) { p.Change(func(u *account.User) { u.Disabled = true }) },
		"policies": func(p *servertest.Browser) { p.Change(func(u *account.User) { u.Policies = []string{o.Policy.ID} }) },
	} {
		t.Run(name, func(t *testing.T) {
			admin := o.person(t, account.Admin)
			plan := o.imports(t, admin, file, "preview").Field(t, "plan")
			contentType, body := fileForm(t, file, "import", "plan", plan)
			finish := admin.HoldUpload(o.base+"/devices/import", contentType, body)
			take(admin)
			if answer := finish(); answer.Status != http.StatusForbidden && answer.Status != http.StatusSeeOther {
				t.Errorf("%d %.600s", answer.Status, answer.Body)
			}
			if n := o.inventory(t); n != 0 {
				t.Errorf("%d assets were made", n)
			}
		})
	}
	admin := o.person(t, account.Admin)
	preview := o.imports(t, admin, file, "preview")
	o.CLI(new(any), "company", "set", "--company", "acme", "--name", "Acme again") // moves, and takes nothing
	if done := o.imports(t, admin, file, "import", "plan", preview.Field(t, "plan")); done.Status != 303 || o.inventory(t) != 1 {
		t.Errorf("%d, %d assets", done.Status, o.inventory(t))
	}
}
