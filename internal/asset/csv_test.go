package asset_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/asset"
)

func TestReadLines(t *testing.T) {
	t.Parallel()
	file := "\xef\xbb\xbfidentification,serialNumber, model ,manufacturer,brand,tags,department\r\n" +
		"Front desk,SN-1,Pixel 8,Google,google,vip; loaner ;;vip,\"Sales, North\"\r\n" +
		"Spare,,,,,,\r\n" +
		"Turned,S\u202eN\u200b-2\ufe0f,Pixel\u00a0 9,\u2066,\u3164,,\r\n"
	got, wrong, err := asset.ReadLines(strings.NewReader(file))
	if err != nil || len(wrong) > 0 {
		t.Fatal(err, wrong)
	}
	want := []asset.Line{
		{
			Number: 2, Identification: "Front desk", Tags: []string{"vip", "loaner"},
			CustomData:     map[string]string{"department": "Sales, North"},
			Specifications: map[string]string{"serialNumber": "SN-1", "model": "Pixel 8", "manufacturer": "Google", "brand": "google"},
		},
		{Number: 3, Identification: "Spare", CustomData: map[string]string{}, Specifications: map[string]string{}},
		{Number: 4, Identification: "Turned", CustomData: map[string]string{},
			Specifications: map[string]string{"serialNumber": "SN-2", "model": "Pixel 9"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestReadLines_TagsCell(t *testing.T) {
	t.Parallel()
	for cell, tags := range map[string][]string{"a;b": {"a", "b"}, `a\;b;c`: {"a;b", "c"}, `a\ ;\;`: {`a\`, ";"}, `a\\;b\`: {`a\;b\`}} {
		lines, wrong, err := asset.ReadLines(strings.NewReader("identification,tags\ndesk," + cell + "\n"))
		if err != nil || len(wrong) > 0 || !slices.Equal(lines[0].Tags, tags) || asset.TagsCell(tags) != cell {
			t.Errorf("%s: read as %v, and written as %s, %v %v", cell, lines, asset.TagsCell(tags), wrong, err)
		}
	}
}

func TestReadLines_Refuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ file, says string }{
		"empty file":           {"", "the file is empty"},
		"no identification":    {"name,model\na,b\n", "identification and serialNumber are missing"},
		"column twice":         {"identification,model,model\n", `column "model" stands twice`},
		"column without name":  {"identification,,model\n", "column 2 has no name"},
		"too few cells":        {"identification,model\na\nb,c\n", "line 2: not as many cells"},
		"blank identification": {"identification,model\na,b\n  ,c\n", "line 3: identification is blank"},
		"serial twice": {"identification,serialNumber,brand\na,S,x\nb, s ,y\n",
			"line 3: serialNumber \"s\" stands on line 2 already"},
		"marked serial":     {"serialNumber\nS1\nS\u200e1\n", "line 3: serialNumber \"S1\" stands on line 2 already"},
		"mark alone":        {"serialNumber\n\u200e\n", "line 2: identification is blank"},
		"long tag":          {"identification,tags\na," + strings.Repeat("x", 65) + "\n", "line 2: tags"},
		"turned tag":        {"identification,tags\na,b\u202ec\n", "line 2: tags[0] must have a character that can be seen"},
		"broken quote":      {"identification\n\"a\n", "line"},
		"not UTF-8":         {"identification\na\xff\n", "line 2: identification is not UTF-8"},
		"control character": {"identification\n\"a\nb\"\n", "line 2: identification holds a control character"},
		"long cell":         {"identification\n" + strings.Repeat("x", 1001) + "\n", "more than 1000 characters"},
		"many tags":         {"identification,tags\na," + numbered(51, ";") + "\n", "at most 50 entries"},
		"many columns":      {"identification," + numbered(100, ",") + "\n", "101 columns"},
		"header alone":      {"identification,model\n", "line 2: the file has no line below its header"},
		"unclosed quote":    {"identification,model\nok,x\n\"a,b\nc,d\n", "line 3: a quote is not closed"},
		"quoted line break": {"identification\n\"a\r\nb\"\n", "line 2: identification holds a control character"},
		"NUL":               {"identification\na\x00b\n", "line 2: identification holds a control character"},
		"UTF-16":            {"\xff\xfei\x00d\x00", "line 1: the file is UTF-16: save it as CSV UTF-8"},
		"Latin-1":           {"identification\nok\nM\xfcller\n", "line 3: identification is not UTF-8: save the file as CSV UTF-8"},
		"Latin-1 in header": {"identification,B\xfcro\nok,x\n", "line 1: column 2 is not UTF-8"},
		"semicolons":        {"identification;model\nok;x;y\n", "line 2: not as many cells"},
		"long line":         {"identification\nok\n" + strings.Repeat("x", 10<<20) + "\n", "line 3: longer than 1 MB"},
		"long header":       {strings.Repeat("x,", 5<<20), "line 1: longer than 1 MB"},
		"quote up to the end": {"identification\nok\n\"" + strings.Repeat("a\n", 5<<20),
			"line 3: longer than 1 MB: perhaps a quote is not closed"},
		"thousand columns": {"identification," + numbered(1000, ",") + "\n", "line 1: 1001 columns"},
		"all faulty lines": {"identification,model\n,b\nok,\n,c\n", "line 2: identification is blank; line 4: identification is blank"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, wrong, err := asset.ReadLines(strings.NewReader(tc.file))
			says := asset.Imported{Errors: wrong}.Failed()
			if err != nil {
				says = err.Error()
			}
			if !strings.Contains(says, tc.says) {
				t.Errorf("got %q; want an error that says %q", says, tc.says)
			}
		})
	}
}

// What Excel writes where the decimal comma is used is read as well, and formulas and HTML
// are text.
func TestReadLines_OfSpreadsheets(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"semicolons":      "\xef\xbb\xbfserialNumber;identification;tags;note\r\nS1;=1+1;\"a;b\";<b>x</b>\r\n",
		"tabs":            "serialNumber\tidentification\ttags\tnote\nS1\t=1+1\ta;b\t<b>x</b>\n",
		"quoted":          "\"serialNumber\",\"identification\",\"tags\",\"note\"\n\"S1\",\"=1+1\",\"a;b\",\"<b>x</b>\"",
		"one ; in a name": "serialNumber,identification,tags,\"note\"\nS1,=1+1,a;b,<b>x</b>\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, wrong, err := asset.ReadLines(strings.NewReader(file))
			want := []asset.Line{{Number: 2, Identification: "=1+1", Tags: []string{"a", "b"},
				CustomData:     map[string]string{"note": "<b>x</b>"},
				Specifications: map[string]string{"serialNumber": "S1"}}}
			if diff := cmp.Diff(want, got); err != nil || len(wrong) > 0 || diff != "" {
				t.Errorf("%v %v (-want +got):\n%s", err, wrong, diff)
			}
		})
	}
}

// A column is what it is mapped to, and two cannot be the same.
func TestCSV_Mapping(t *testing.T) {
	t.Parallel()
	open := func() *asset.CSV {
		file, err := asset.OpenCSV(strings.NewReader("Device Name,S/N,Assigned to,Cost center,Secret\nOne,S1,Ada,42,x\n"))
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	file := open()
	var targets []string
	for _, column := range file.Columns {
		targets = append(targets, asset.Suggested(column))
	}
	if got, want := strings.Join(targets, "|"), "identification|serialNumber|user|Cost center|Secret"; got != want {
		t.Fatalf("suggested %s, want %s", got, want)
	}
	targets[4] = ""
	got, wrong, err := file.Lines(targets)
	want := []asset.Line{{Number: 2, Identification: "One", CustomData: map[string]string{"user": "Ada", "Cost center": "42"},
		Specifications: map[string]string{"serialNumber": "S1"}}}
	if diff := cmp.Diff(want, got); err != nil || len(wrong) > 0 || diff != "" {
		t.Errorf("%v %v (-want +got):\n%s", err, wrong, diff)
	}
	if targets[3] = "user"; true {
		if _, _, err := open().Lines(targets); err == nil || !strings.Contains(err.Error(), "two columns are user") {
			t.Errorf("two columns for one field: %v", err)
		}
	}
}

// A file takes little memory beside its lines, whatever is in it: a quote that is not closed
// and a line without an end are given up after 1 MB.
func TestReadLines_BoundsMemory(t *testing.T) {
	for name, file := range map[string]io.Reader{
		"no quote is closed": io.MultiReader(strings.NewReader("identification\n\""), &endless{text: "a\n"}),
		"no line ends":       io.MultiReader(strings.NewReader("identification\n"), &endless{text: "a"}),
		"no header ends":     &endless{text: "a,"},
		"blank lines alone":  io.MultiReader(strings.NewReader("identification\n"), &endless{text: "\n"}),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, wrong, err := asset.ReadLines(file); err == nil && len(wrong) == 0 {
			t.Errorf("%s: it is accepted", name)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 100<<20 {
			t.Errorf("%s: %d MB were allocated", name, used>>20)
		}
	}
	lines := io.MultiReader(strings.NewReader("identification,note\n"), &endless{text: "name," + strings.Repeat("x", 990) + "\n"})
	if _, _, err := asset.ReadLines(lines); !errors.Is(err, asset.ErrLargeFile) {
		t.Errorf("a file without end: %v", err)
	}
}

// endless is a text again and again.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[e.at]
		e.at = (e.at + 1) % len(e.text)
	}
	return len(p), nil
}

// BenchmarkReadLines reads a file of 100,000 lines, and says how much memory its lines take.
func BenchmarkReadLines(b *testing.B) {
	var file strings.Builder
	file.WriteString("identification,serialNumber,model,tags,user,department\n")
	for i := range 100_000 {
		fmt.Fprintf(&file, "Phone %d,SN%d,Pixel 8,store-%d;office,Person %d,Sales\n", i, i, i%100, i)
	}
	for b.Loop() {
		lines, _, err := asset.ReadLines(strings.NewReader(file.String()))
		if err != nil || len(lines) != 100_000 {
			b.Fatal(err)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MB")
		runtime.KeepAlive(lines)
	}
}

func FuzzReadLines(f *testing.F) {
	f.Add("identification,tags,x\na,b;c,d\n")
	f.Add("\xef\xbb\xbfidentification\n\"a\"\"b\"\n")
	f.Add("serialNumber,identification\r\n\"a\n\",b\r\n")
	f.Fuzz(func(t *testing.T, file string) {
		lines, wrong, err := asset.ReadLines(strings.NewReader(file))
		if err != nil || len(wrong) > 0 {
			return
		}
		for _, l := range lines {
			if strings.TrimSpace(l.Identification) == "" && l.SerialKey() == "" || l.Number < 2 {
				t.Fatalf("accepted %+v", l)
			}
		}
	})
}

func numbered(n int, separator string) string {
	cells := make([]string, n)
	for i := range cells {
		cells[i] = fmt.Sprint("c", i)
	}
	return strings.Join(cells, separator)
}
