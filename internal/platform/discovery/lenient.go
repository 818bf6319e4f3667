package discovery

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
)

// canonical turns a spelling that the vendor's parser takes beside the usual one
// (proto3's JSON mapping) into the usual one: a number as text, a 64-bit integer
// as a number, an integer with an exponent or a fraction of zero, an enum's
// value as its number. Every other value stays as it is. An enum's numbers are
// taken to count its values in the document's order, which does not tell them.
func (s *schema) canonical(value any) any {
	text, isText := value.(string)
	number, isNumber := value.(json.Number)
	switch {
	case s.Type == "integer" && isText && json.Valid([]byte(text)):
		return integer(json.Number(text))
	case s.Type == "integer" && isNumber:
		return integer(number)
	case s.Type == "number" && isText:
		if n, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) && json.Valid([]byte(text)) {
			return json.Number(text)
		}
	case s.Type == "string" && isNumber && (s.Format == "int64" || s.Format == "uint64"):
		return string(integer(number))
	case s.Type == "string" && isNumber && len(s.Enum) > 0:
		if n, err := strconv.Atoi(string(integer(number))); err == nil && n >= 0 && n < len(s.Enum) {
			return s.Enum[n]
		}
	}
	return value
}

// maxExponentText bounds what is worked out exactly: 1e400 is no integer here.
const maxExponentText = 40

// integer writes a whole number without exponent and fraction.
func integer(number json.Number) json.Number {
	if len(number) > maxExponentText {
		return number
	}
	if f, err := number.Float64(); err != nil || math.Abs(f) > math.MaxUint64 {
		return number
	}
	if exact, ok := new(big.Rat).SetString(string(number)); ok && exact.IsInt() {
		return json.Number(exact.Num().String())
	}
	return number
}
