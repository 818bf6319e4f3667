package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/musterhq/muster/internal/slice"
	"github.com/musterhq/muster/internal/surface/cli"
)

// completionCommand prints a script with which a shell completes the command lines of muster.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Help is printed below the flags.
func (completionCommand) Help() string {
	return `bash: echo 'source <(muster completion bash)' >> ~/.bashrc
zsh:  echo 'source <(muster completion zsh)' >> ~/.zshrc (after compinit)
fish: muster completion fish > ~/.config/fish/completions/muster.fish`
}

// completing is the first argument of a call in which the script asks for words. See complete.
const completing = "__complete"

// Run prints the script. At each completion the script calls this program, so it need not change with the commands.
func (c *completionCommand) Run(env *cli.Env) error {
	script := map[string]string{
		"bash": `_muster() {
	local IFS=$'\n'
	COMPREPLY=($(muster ` + completing + ` "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _muster muster
`,
		"zsh": `#compdef muster
_muster() {
	local -a found
	found=("${(@f)$(muster ` + completing + ` "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n "$found" ]]; then compadd -a found; else _files; fi
}
compdef _muster muster
`,
		"fish": `function __muster
	set -l found (muster ` + completing + ` (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
	if set -q found[1]
		printf '%s\n' $found
	else
		__fish_complete_path (commandline -ct)
	end
end
complete -c muster -f -a '(__muster)'
`,
	}[c.Shell]
	_, err := io.WriteString(env.Out, script)
	return err
}

// complete prints the words that the last of args may become, one a line. args are the words after the program's name, up
// to the cursor; the last may be empty.
func complete(parser *kong.Kong, args []string, out io.Writer) {
	if len(args) == 0 {
		args = []string{""}
	}
	done, last := args[:len(args)-1], args[len(args)-1]
	written := "" // the part of the last word before the value, printed before each candidate
	if name, value, valued := strings.Cut(last, "="); valued {
		if strings.HasPrefix(name, "-") { // --flag=value in one word
			done, last, written = append(slices.Clone(done), name), value, name+"="
		} else if name == "" { // bash splits --flag=value into three words, of which "=" is one
			last = value
		}
	}
	node, arguments := parser.Model.Node, 0 // the command so far, and how many positional arguments it has
	var open *kong.Flag                     // the flag whose value comes next; nil: none
	for _, word := range done {
		name, _, valued := strings.Cut(word, "=")
		switch {
		case open != nil && word == "=": // the value comes after it
		case open != nil:
			open = nil
		case strings.HasPrefix(word, "-"):
			if flag := flagOf(node, name); flag != nil && !flag.IsBool() && !valued {
				open = flag
			}
		default:
			if child := childOf(node, word); child != nil {
				node = child
			} else {
				arguments++
			}
		}
	}
	for _, word := range candidates(node, open, arguments, strings.HasPrefix(last, "-")) {
		if strings.HasPrefix(word, last) {
			fmt.Fprintln(out, written+word)
		}
	}
}

// candidates returns all words that may come next after a command with this many positional arguments: values of the flag
// open, flags if flag is set, values of the next argument, or else subcommands.
func candidates(node *kong.Node, open *kong.Flag, arguments int, flag bool) (words []string) {
	switch {
	case open != nil:
		return values(open.Value)
	case flag:
		return slice.Map(slices.Concat(node.AllFlags(true)...), func(flag *kong.Flag) string { return "--" + flag.Name })
	case arguments < len(node.Positional):
		return values(node.Positional[arguments])
	}
	for _, child := range node.Children {
		if child.Type == kong.CommandNode && !child.Hidden {
			words = append(words, child.Name)
		}
	}
	return words
}

// values returns the values of a flag or an argument that has an enum; nil for any other.
func values(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return slices.DeleteFunc(strings.Split(v.Enum, ","), func(text string) bool { return text == "" })
}

// flagOf finds a flag of the command or of those above it by its long or short name, with the hyphens; nil: none.
func flagOf(node *kong.Node, name string) *kong.Flag {
	return slice.First(slices.Concat(node.AllFlags(false)...), func(flag *kong.Flag) bool {
		return name == "--"+flag.Name || flag.Short != 0 && name == "-"+string(flag.Short)
	})
}

// childOf finds a subcommand by its name; nil: none.
func childOf(node *kong.Node, name string) *kong.Node {
	return slice.First(node.Children, func(child *kong.Node) bool { return child.Type == kong.CommandNode && child.Name == name })
}
