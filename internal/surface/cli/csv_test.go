package cli_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/surface/cli"
)

func TestReadAssets(t *testing.T) {
	t.Parallel()
	file := "\xef\xbb\xbfidentification,serialNumber, model ,manufacturer,brand,tags,department\r\n" +
		"Front desk,SN-1,Pixel 8,Google,google,vip; loaner ;;vip,\"Sales, North\"\r\n" +
		"Spare,,,,,,\r\n"
	got, err := cli.ReadAssets(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	want := []asset.Asset{
		{
			Identification: "Front desk", Status: asset.Pending, Tags: []string{"vip", "loaner"},
			CustomData:     map[string]string{"department": "Sales, North"},
			Specifications: map[string]string{"serialNumber": "SN-1", "model": "Pixel 8", "manufacturer": "Google", "brand": "google"},
		},
		{Identification: "Spare", Status: asset.Pending, CustomData: map[string]string{}, Specifications: map[string]string{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("assets (-want +got):\n%s", diff)
	}
}

func TestReadAssets_Refuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ file, says string }{
		"empty file":           {"", "the file is empty"},
		"no identification":    {"name,model\na,b\n", "identification is missing"},
		"column twice":         {"identification,model,model\n", `column "model" stands twice`},
		"column without name":  {"identification,,model\n", "column 2 has no name"},
		"too few cells":        {"identification,model\na\nb,c\n", "line 2: not as many cells"},
		"blank identification": {"identification,model\na,b\n  ,c\n", "line 3: identification is blank"},
		"serial twice":         {"identification,serialNumber\na,S\nb,S\n", "line 3: serialNumber \"S\" stands on line 2 already"},
		"broken quote":         {"identification\n\"a\n", "line"},
		"not UTF-8":            {"identification\na\xff\n", "line 2: identification is not UTF-8"},
		"control character":    {"identification\n\"a\nb\"\n", "line 2: identification holds a control character"},
		"long cell":            {"identification\n" + strings.Repeat("x", 1001) + "\n", "more than 1000 characters"},
		"many tags":            {"identification,tags\na," + numbered(51, ";") + "\n", "more than 50 tags"},
		"many columns":         {"identification," + numbered(100, ",") + "\n", "101 columns"},
		"all faulty lines":     {"identification,model\n,b\nok,\n,c\n", "line 2: identification is blank; line 4: identification is blank"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := cli.ReadAssets(strings.NewReader(tc.file))
			if got != nil || fault.CodeOf(err) != fault.InvalidArguments || !strings.Contains(cli.Message(err), tc.says) {
				t.Errorf("got %v, %v; want an error that says %q", got, err, tc.says)
			}
		})
	}
}

func TestReadAssets_SameSerialOfOtherBrand(t *testing.T) {
	t.Parallel()
	got, err := cli.ReadAssets(strings.NewReader("identification,serialNumber,brand\na,S,x\nb,S,y\n"))
	if err != nil || len(got) != 2 {
		t.Errorf("got %v, %v; want two assets", got, err)
	}
}

func FuzzReadAssets(f *testing.F) {
	f.Add("identification,tags,x\na,b;c,d\n")
	f.Add("\xef\xbb\xbfidentification\n\"a\"\"b\"\n")
	f.Add("identification,serialNumber\r\n\"a\n\",b\r\n")
	f.Fuzz(func(t *testing.T, file string) {
		assets, err := cli.ReadAssets(strings.NewReader(file))
		if err != nil {
			if assets != nil || strings.ContainsAny(cli.Message(err), "\n\r") {
				t.Fatalf("an error with %d assets and message %q", len(assets), cli.Message(err))
			}
			return
		}
		for _, a := range assets {
			if strings.TrimSpace(a.Identification) == "" || a.Status != asset.Pending {
				t.Fatalf("accepted %+v", a)
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
