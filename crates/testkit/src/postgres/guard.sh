# Runs a server that several processes share, and ends it when nobody uses it: guard.sh DIR COMMAND...
dir=$1
shift
"$@" >>"$dir/log" 2>&1 &
server=$!
exec 8>>"$dir.start" 9>>"$dir.users"
idle=0
while kill -0 "$server" 2>/dev/null; do
    sleep 0.2
    # Who starts a server holds the first lock, who uses it the second.
    if flock -n 8; then
        if flock -n 9; then
            idle=$((idle + 1))
            if [ $idle -gt 10 ]; then
                kill -INT "$server"
                wait "$server"
                rm -rf "$dir"
                exit
            fi
            flock -u 9
        else
            idle=0
        fi
        flock -u 8
    else
        idle=0
    fi
done
