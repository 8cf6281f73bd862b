package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/promlake/promlake/internal/app/flags"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: ${enum}."`
}

// Help is printed below the usage.
func (completionCmd) Help() string {
	return `Bash: source <(promlake completion bash), in ~/.bashrc

Zsh: source <(promlake completion zsh), in ~/.zshrc after compinit

Fish: promlake completion fish > ~/.config/fish/completions/promlake.fish`
}

// completions are the scripts of the shells around the alternatives of a case: for the commands on
// the line, the words that may follow.
var completions = map[string]string{
	"bash": `_promlake() {
  local word list command=
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in [a-z]*) command+="${command:+ }$word" ;; esac
  done
  case $command in
%s  esac
  COMPREPLY=($(compgen -W "$list" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _promlake promlake
`,
	"zsh": `#compdef promlake
_promlake() {
  local word list command=
  for word in "${(@)words[2,CURRENT-1]}"; do
    case $word in [a-z]*) command+="${command:+ }$word" ;; esac
  done
  case $command in
%s  esac
  compadd -- ${=list} || _files
}
compdef _promlake promlake
`,
	"fish": `function __promlake_words
  set -l command (string match -r '^[a-z].*' -- (commandline -opc)[2..])
  switch "$command"
%s  end
end
complete -c promlake -a '(__promlake_words)'
`,
}

// Run prints the script.
func (c *completionCmd) Run(streams flags.Streams) error {
	k, err := flags.NewParser(program, description, newCLI())
	if err != nil {
		return err
	}
	var b strings.Builder
	c.cases(&b, k.Model.Node, "")
	return streams.Print("the script", fmt.Sprintf(completions[c.Shell], b.String()))
}

// cases writes the alternative of a command after those of its subcommands: the first one that
// matches counts.
func (c *completionCmd) cases(w io.Writer, n *kong.Node, path string) {
	var words []string
	for _, child := range n.Children {
		words = append(words, child.Name)
		c.cases(w, child, strings.TrimSpace(path+" "+child.Name))
	}
	for _, f := range slices.Concat(n.AllFlags(true)...) {
		names := []string{f.Name}
		if f.Tag.Negatable != "" {
			names = append(names, "no-"+f.Name)
		}
		for _, name := range names {
			words = append(words, "--"+name)
		}
	}
	for _, p := range n.Positional {
		words = append(words, strings.FieldsFunc(p.Enum, func(r rune) bool { return r == ',' })...)
	}
	list, pattern, format := strings.Join(words, " "), "'"+path+"' | '"+path+" '*", "  %s) list='%s' ;;\n"
	if c.Shell == "fish" {
		pattern, format = "'"+path+"' '"+path+" *'", "  case %s\n    string split ' ' -- '%s'\n"
	}
	fmt.Fprintf(w, format, pattern, list)
}
