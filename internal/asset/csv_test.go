package asset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/asset"
)

func TestReadLines(t *testing.T) {
	t.Parallel()
	file := "\xef\xbb\xbfidentification,serialNumber, model ,manufacturer,brand,tags,department\r\n" +
		"Front desk,SN-1,Pixel 8,Google,google,vip; loaner ;;vip,\"Sales, North\"\r\n" +
		"Spare,,,,,,\r\n"
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
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
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
		"serial twice":         {"identification,serialNumber,brand\na,S,x\nb, s ,y\n", "line 3: serialNumber \"s\" stands on line 2 already"},
		"long tag":             {"identification,tags\na," + strings.Repeat("x", 65) + "\n", "line 2: tags"},
		"broken quote":         {"identification\n\"a\n", "line"},
		"not UTF-8":            {"identification\na\xff\n", "line 2: identification is not UTF-8"},
		"control character":    {"identification\n\"a\nb\"\n", "line 2: identification holds a control character"},
		"long cell":            {"identification\n" + strings.Repeat("x", 1001) + "\n", "more than 1000 characters"},
		"many tags":            {"identification,tags\na," + numbered(51, ";") + "\n", "at most 50 entries"},
		"many columns":         {"identification," + numbered(100, ",") + "\n", "101 columns"},
		"all faulty lines":     {"identification,model\n,b\nok,\n,c\n", "line 2: identification is blank; line 4: identification is blank"},
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
