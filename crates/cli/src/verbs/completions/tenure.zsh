#compdef tenure
# zsh completion for tenure; tenure itself says what may come next
_tenure() {
    local line
    local -a values shown
    for line in "${(@f)$(tenure __complete zsh -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
        if [[ $line == :files ]]; then
            _files
            return
        fi
        [[ -z $line ]] && continue
        values+=("${line%%$'\t'*}")
        # Not every word has an explanation.
        shown+=("${${line/$'\t'/  -- }%  -- }")
    done
    (( $#values )) && compadd -V tenure -d shown -a values
}
if [[ $funcstack[1] == _tenure ]]; then
    _tenure "$@"
else
    compdef _tenure tenure
fi
