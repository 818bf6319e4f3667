package emulator

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// bounds are the values that the vendor's description of a member allows.
// Unset is 0 where that is outside of them.
type bounds struct{ least, most int64 }

// ranges are the members of a policy whose values the schema's types do not
// bound, by name: each name means the same wherever it occurs.
var ranges = map[string]bounds{ //nolint:gochecknoglobals // a table that is never written to
	"installPriority":          {0, 10_000},
	"minimumVersionCode":       {0, math.MaxInt32},
	"maxDaysWithWorkOff":       {3, math.MaxInt32},
	"startMinutes":             {0, 1439},
	"endMinutes":               {0, 1439},
	"screenBrightness":         {1, 255},
	"minApiLevel":              {1, math.MaxInt32},
	"maximumTimeToLock":        {0, math.MaxInt64},
	"passwordMinimumLength":    {0, math.MaxInt32},
	"passwordMinimumLetters":   {0, math.MaxInt32},
	"passwordMinimumLowerCase": {0, math.MaxInt32},
	"passwordMinimumNonLetter": {0, math.MaxInt32},
	"passwordMinimumNumeric":   {0, math.MaxInt32},
	"passwordMinimumSymbols":   {0, math.MaxInt32},
	"passwordMinimumUpperCase": {0, math.MaxInt32},
	"passwordHistoryLength":    {0, math.MaxInt32},
	"carrierId":                {0, math.MaxInt32},
	"mmsProxyPort":             {0, math.MaxInt32},
	"proxyPort":                {0, math.MaxInt32},
	"mtuV4":                    {0, math.MaxInt32},
	"mtuV6":                    {0, math.MaxInt32},
}

// checkRanges refuses numbers in a decoded policy that are out of their range.
func checkRanges(tree any, path string) error {
	switch tree := tree.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			if err := checkRange(name, tree[name], path+name); err != nil {
				return err
			}
			if err := checkRanges(tree[name], path+name+"."); err != nil {
				return err
			}
		}
	case []any:
		for i, element := range tree {
			if err := checkRanges(element, fmt.Sprintf("%s[%d].", path[:max(0, len(path)-1)], i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkRange(name string, value any, path string) error {
	allowed, bound := ranges[name]
	if !bound {
		return nil
	}
	text, _ := value.(string) // a 64-bit integer
	if number, ok := value.(json.Number); ok {
		text = string(number)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n == 0 || n >= allowed.least && n <= allowed.most {
		return nil
	}
	return invalid("Invalid value at '%s': %d is not in the range %d to %d", path, n, allowed.least, allowed.most)
}
