# fish completion for tenure; tenure itself says what may come next
function __tenure_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l replies (tenure __complete fish -- $words[2..-1] 2>/dev/null)
    if test "$replies[1]" = :files
        __fish_complete_path (commandline -ct)
    else
        printf '%s\n' $replies
    end
end
complete -c tenure -k -f -a '(__tenure_complete)'
