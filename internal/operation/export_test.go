package operation

import "reflect"

// Compile compiles a struct type as the arguments of an operation.
func Compile(owner string, typ reflect.Type) { compile(owner, typ) }
