package enrollment

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/operation"
)

// shaped returns a decoded JSON value without what does not have the shape of a type: a
// member of another type than the struct's field, an element of another type than the
// slice's. Members that the struct does not have stay. It is false if nothing is left that
// has the shape. Numbers are json.Number.
func shaped(value any, t reflect.Type) (any, bool) {
	if t.Kind() == reflect.Pointer {
		return shaped(value, t.Elem())
	}
	if typed, ok := reflect.Zero(t).Interface().(operation.Typed); ok {
		return value, slices.Contains(typed.Types(), jsonType(value))
	}
	switch t.Kind() {
	case reflect.Struct:
		if t == reflect.TypeFor[operation.Timestamp]() {
			text, ok := value.(string)
			_, err := time.Parse(time.RFC3339, text)
			return value, ok && err == nil
		}
		return shapedMembers(value, t)
	case reflect.Slice:
		list, ok := value.([]any)
		kept := make([]any, 0, len(list))
		for _, element := range list {
			if element, fits := shaped(element, t.Elem()); fits {
				kept = append(kept, element)
			}
		}
		return kept, ok
	case reflect.Map:
		object, ok := value.(map[string]any)
		for name, member := range object {
			if _, fits := shaped(member, t.Elem()); !fits {
				delete(object, name)
			}
		}
		return object, ok
	case reflect.Interface:
		return value, true
	default:
		return value, scalar(value, t.Kind())
	}
}

// shapedMembers is shaped for an object. It is false for one without a member that is
// always there.
func shapedMembers(value any, t reflect.Type) (_ any, complete bool) {
	object, complete := value.(map[string]any)
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		member, has := object[name]
		if has {
			if member, has = shaped(member, t.Field(i).Type); has {
				object[name] = member
			} else {
				delete(object, name)
			}
		}
		complete = complete && (has || options != "")
	}
	return object, complete
}

func scalar(value any, kind reflect.Kind) bool {
	switch kind {
	case reflect.String:
		return jsonType(value) == "string"
	case reflect.Bool:
		return jsonType(value) == "boolean"
	case reflect.Int, reflect.Int64:
		return jsonType(value) == "integer"
	case reflect.Float64:
		return strings.Contains("number integer", jsonType(value))
	default:
		return false
	}
}

// jsonType is the type of a decoded value by its name in JSON Schema. A number is an
// integer only if it has 64 bits and is written without a fraction and an exponent.
func jsonType(value any) string {
	switch v := value.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		if _, err := v.Int64(); err == nil {
			return "integer"
		}
		if f, err := v.Float64(); err == nil && !math.IsInf(f, 0) {
			return "number"
		}
	}
	return "other"
}
