package policy_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/musterhq/muster/internal/policy"
)

func TestCleanName_RefusesWhatNobodyCanSee(t *testing.T) {
	t.Parallel()
	for class, names := range map[string][]string{
		"control":            {"Vault\x00", "a\x7fb", "a\u0085b", "a\tb"},
		"format":             {"Warehouse K\u200b", "a\u202eb", "a\u00adb", "a\u2060b", "a\u200db", "a\u061cb"},
		"tags":               {"a\U000e0041", "\U000e0041\U000e007f"},
		"variation selector": {"a\ufe0f", "a\U000e0100"},
		"default ignorable":  {"\u115f", "\u3164", "a\uffa0b", "a\u034fb", "\u17b4"},
		"private use":        {"a\ue000", "\U000f0000", "\U0010fffd"},
		"unassigned":         {"a\u0378", "a\uffff", "a\U0001ffff"},
		"blank": {"a\u00a0b", "\u00a0a", "a\u00a0", "a\u2003", "\u3000a", "a\u2028", "a\t", "a\u3000b", "a\u2003b", "a\u2028b",
			"a\u1680b", "\u2800", "a\u2800b"},
		"nothing to see": {"\u0301", "\u0301\u0302 \u0303"},
		"blank at all":   {"", " ", "\u200b"},
		"not UTF-8":      {"a\xff"},
		"too long":       {strings.Repeat("é", 51)},
	} {
		t.Run(class, func(t *testing.T) {
			for _, name := range names {
				if clean, wrong := policy.CleanName(name); wrong == "" {
					t.Errorf("%s: %+q is accepted as %+q", class, name, clean)
				}
			}
		})
	}
	for name, want := range map[string]string{" Vault ": "Vault", "Lager Süd": "Lager Süd", "日本 倉庫": "日本 倉庫",
		"мобильные": "мобильные", "Cafe\u0301": "Café", strings.Repeat("e\u0301", 50): strings.Repeat("é", 50),
		"🔒 C-3 (50%)": "🔒 C-3 (50%)", "हिन्दी": "हिन्दी"} {
		t.Run(name, func(t *testing.T) {
			if clean, wrong := policy.CleanName(name); wrong != "" || clean != want {
				t.Errorf("%+q is %+q, wrong: %q", name, clean, wrong)
			}
		})
	}
}

func TestLook_ConfusableNamesAreAlike(t *testing.T) {
	t.Parallel()
	alike := func(a, b string) bool { return policy.LookOf(a).Like(policy.LookOf(b)) }
	for _, pair := range [][2]string{
		{"Warehouse K", "warehouse k"}, {"Warehouse K", "Warehouse  K"}, {"Warehouse K", "W\u0430rehouse K"},
		{"Warehouse K", "\uff37arehouse K"},
		{"Warehouse K", "Warehouse K\u200b"}, {"Warehouse K", "Ware\u00adhouse K"}, {"Warehouse K", "Warehouse\u00a0K"},
		{"Warehouse K", "Warehouse \u212a"},
		{"Warehouse K", "W\u0410REHOUSE K"}, {"Vault", "𝐕ault"}, {"Straße", "STRASSE"}, {"Floor 1", "Floor l"}, {"Floor I", "Floor l"},
		{"Floor I", "Floor 1"},
		{"Zone 0", "Zone O"}, {"\u200b", "\u2800"}, {"Café", "Cafe\u0301"}, {"paypal", "\u0440\u0430\u0443\u0440\u0430l"},
		{"ﬁeld", "field"},
	} {
		if !alike(pair[0], pair[1]) {
			t.Errorf("%+q and %+q pass for different names", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{"Warehouse K", "Warehouse L"}, {"Mail", "Mall"}, {"Vault", "Vaults"}, {"Café", "Cafe"}, {"倉庫", "東京"},
		{"Floor 1", "Floor 2"}} {
		if alike(pair[0], pair[1]) {
			t.Errorf("%+q and %+q pass for the same name", pair[0], pair[1])
		}
	}
}

func TestSameName_ComparesWhatWasTyped(t *testing.T) {
	t.Parallel()
	for _, typed := range []string{"Café Süd", " CAFÉ SÜD ", "cafe\u0301 su\u0308d", "\tcafé süd\n"} {
		if !policy.SameName(typed, "Café Süd") {
			t.Errorf("%+q is not taken for the name", typed)
		}
	}
	for _, typed := range []string{"", "Cafe Süd", "Café  Süd", "Café Süd\u200b", "C\u0430fé Süd", "\uff23afé Süd",
		"Café\u00a0Süd", "CaféSüd"} {
		if policy.SameName(typed, "Café Süd") {
			t.Errorf("%+q is taken for the name", typed)
		}
	}
}

func TestShownName_EscapesWhatWouldBeRefused(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"Vault": "Vault", "Café": "Café", "Vault\u200b": `Vault\u200b`, "a\u202eb": `a\u202eb`,
		"\U000e0041": `\U000e0041`, "a\u00a0b": `a\u00a0b`, "\u0301": `\u0301`, "a\nb": `a\u000ab`} {
		t.Run(name, func(t *testing.T) {
			if got := policy.ShownName(name); got != want {
				t.Errorf("%+q is shown as %+q, want %+q", name, got, want)
			}
		})
	}
}

func FuzzNames(f *testing.F) {
	for _, name := range []string{"Vault", "Vault\u200b", "Cafe\u0301", "\u2800", "W\u0430rehouse", "a\xffb", "\U000e0041"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, text string) {
		clean, wrong := policy.CleanName(text)
		if wrong == "" {
			again, stillWrong := policy.CleanName(clean)
			if again != clean || stillWrong != "" || !norm.NFC.IsNormalString(clean) || policy.ShownName(clean) != clean {
				t.Errorf("%+q is kept as %+q, which is not clean (%q)", text, clean, stillWrong)
			}
			if !policy.SameName(text, clean) || !policy.LookOf(text).Like(policy.LookOf(clean)) {
				t.Errorf("%+q is not the same as %+q", text, clean)
			}
		}
		if utf8.ValidString(text) {
			if _, wrong := policy.CleanName(policy.ShownName(text)); wrong != "" && wrong != "must be at most 50 characters" &&
				wrong != "must not be blank" {
				t.Errorf("%+q is shown as %+q, which %s", text, policy.ShownName(text), wrong)
			}
		}
	})
}
