# bash completion for tenure; tenure itself says what may come next
_tenure() {
    local reply
    COMPREPLY=()
    while IFS= read -r reply; do
        if [[ $reply == :files ]]; then
            compopt -o default 2>/dev/null
            return
        fi
        COMPREPLY+=("$reply")
        # A flag's value follows it without a space.
        [[ $reply == *= ]] && compopt -o nospace 2>/dev/null
    done < <(tenure __complete bash -- "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
}
complete -o nosort -F _tenure tenure 2>/dev/null || complete -F _tenure tenure
